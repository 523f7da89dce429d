/*
 * The fields of the built-in kinds, made by tools/builtin-types from a real server's
 * documents; change the tool, not this file.
 */
#include "sandbox/apiserver/builtin_types_table.h"

const struct builtin_type builtin_types[] = {
    { "apiextensions.v1.CustomResourceColumnDefinition", false,
      "description:s format:s jsonPath!:s name!:s priority:w type!:s" },
    { "apiextensions.v1.CustomResourceConversion", false,
      "strategy!:s webhook:@apiextensions.v1.WebhookConversion" },
    { "apiextensions.v1.CustomResourceDefinition", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta "
      "spec!:@apiextensions.v1.CustomResourceDefinitionSpec "
      "status:@apiextensions.v1.CustomResourceDefinitionStatus" },
    { "apiextensions.v1.CustomResourceDefinitionCondition", false,
      "lastTransitionTime:t message:s observedGeneration:i reason:s status!:s type!:s" },
    { "apiextensions.v1.CustomResourceDefinitionNames", false,
      "categories:[s]=atomic kind!:s listKind:s plural!:s shortNames:[s]=atomic singular:s" },
    { "apiextensions.v1.CustomResourceDefinitionSpec", false,
      "conversion:@apiextensions.v1.CustomResourceConversion group!:s "
      "names!:@apiextensions.v1.CustomResourceDefinitionNames preserveUnknownFields:b "
      "scope!:s versions!:[@apiextensions.v1.CustomResourceDefinitionVersion]=atomic" },
    { "apiextensions.v1.CustomResourceDefinitionStatus", false,
      "acceptedNames:@apiextensions.v1.CustomResourceDefinitionNames "
      "conditions:[@apiextensions.v1.CustomResourceDefinitionCondition]=map(type) "
      "observedGeneration:i storedVersions:[s]=atomic" },
    { "apiextensions.v1.CustomResourceDefinitionVersion", false,
      "additionalPrinterColumns:[@apiextensions.v1.CustomResourceColumnDefinition]=atomic "
      "deprecated:b deprecationWarning:s name!:s "
      "schema:@apiextensions.v1.CustomResourceValidation "
      "selectableFields:[@apiextensions.v1.SelectableField]=atomic served!:b storage!:b "
      "subresources:@apiextensions.v1.CustomResourceSubresources" },
    { "apiextensions.v1.CustomResourceSubresourceScale", false,
      "labelSelectorPath:s specReplicasPath!:s statusReplicasPath!:s" },
    { "apiextensions.v1.CustomResourceSubresourceStatus", false, "" },
    { "apiextensions.v1.CustomResourceSubresources", false,
      "scale:@apiextensions.v1.CustomResourceSubresourceScale "
      "status:@apiextensions.v1.CustomResourceSubresourceStatus" },
    { "apiextensions.v1.CustomResourceValidation", false,
      "openAPIV3Schema:@apiextensions.v1.JSONSchemaProps" },
    { "apiextensions.v1.ExternalDocumentation", false, "description:s url:s" },
    { "apiextensions.v1.JSONSchemaProps", false,
      "$ref:s $schema:s additionalItems:a additionalProperties:a "
      "allOf:[@apiextensions.v1.JSONSchemaProps]=atomic "
      "anyOf:[@apiextensions.v1.JSONSchemaProps]=atomic default:a "
      "definitions:{@apiextensions.v1.JSONSchemaProps} dependencies:{a} description:s "
      "enum:[a]=atomic example:a exclusiveMaximum:b exclusiveMinimum:b "
      "externalDocs:@apiextensions.v1.ExternalDocumentation format:s id:s items:a "
      "maxItems:i maxLength:i maxProperties:i maximum:n minItems:i minLength:i "
      "minProperties:i minimum:n multipleOf:n not:@apiextensions.v1.JSONSchemaProps "
      "nullable:b oneOf:[@apiextensions.v1.JSONSchemaProps]=atomic pattern:s "
      "patternProperties:{@apiextensions.v1.JSONSchemaProps} "
      "properties:{@apiextensions.v1.JSONSchemaProps} required:[s]=atomic title:s type:s "
      "uniqueItems:b x-kubernetes-embedded-resource:b x-kubernetes-int-or-string:b "
      "x-kubernetes-list-map-keys:[s]=atomic x-kubernetes-list-type:s "
      "x-kubernetes-map-type:s x-kubernetes-preserve-unknown-fields:b "
      "x-kubernetes-validations:[@apiextensions.v1.ValidationRule]=map(rule)+merge/rule" },
    { "apiextensions.v1.SelectableField", false, "jsonPath!:s" },
    { "apiextensions.v1.ServiceReference", false, "name!:s namespace!:s path:s port:w" },
    { "apiextensions.v1.ValidationRule", false,
      "fieldPath:s message:s messageExpression:s optionalOldSelf:b reason:s rule!:s" },
    { "apiextensions.v1.WebhookClientConfig", false,
      "caBundle:y service:@apiextensions.v1.ServiceReference url:s" },
    { "apiextensions.v1.WebhookConversion", false,
      "clientConfig:@apiextensions.v1.WebhookClientConfig "
      "conversionReviewVersions!:[s]=atomic" },
    { "apps.v1.ControllerRevision", false,
      "apiVersion:s data:a kind:s metadata:@meta.v1.ObjectMeta revision!:i" },
    { "apps.v1.DaemonSet", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@apps.v1.DaemonSetSpec "
      "status:@apps.v1.DaemonSetStatus" },
    { "apps.v1.DaemonSetCondition", false,
      "lastTransitionTime:t message:s reason:s status!:s type!:s" },
    { "apps.v1.DaemonSetSpec", false,
      "minReadySeconds:w revisionHistoryLimit:w selector!:@meta.v1.LabelSelector "
      "template!:@core.v1.PodTemplateSpec updateStrategy:@apps.v1.DaemonSetUpdateStrategy" },
    { "apps.v1.DaemonSetStatus", false,
      "collisionCount:w conditions:[@apps.v1.DaemonSetCondition]=map(type)+merge/type "
      "currentNumberScheduled!:w desiredNumberScheduled!:w numberAvailable:w "
      "numberMisscheduled!:w numberReady!:w numberUnavailable:w observedGeneration:i "
      "updatedNumberScheduled:w" },
    { "apps.v1.DaemonSetUpdateStrategy", false,
      "rollingUpdate:@apps.v1.RollingUpdateDaemonSet type:s" },
    { "apps.v1.Deployment", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@apps.v1.DeploymentSpec "
      "status:@apps.v1.DeploymentStatus" },
    { "apps.v1.DeploymentCondition", false,
      "lastTransitionTime:t lastUpdateTime:t message:s reason:s status!:s type!:s" },
    { "apps.v1.DeploymentSpec", false,
      "minReadySeconds:w paused:b progressDeadlineSeconds:w replicas:w "
      "revisionHistoryLimit:w selector!:@meta.v1.LabelSelector "
      "strategy:@apps.v1.DeploymentStrategy+retainKeys template!:@core.v1.PodTemplateSpec" },
    { "apps.v1.DeploymentStatus", false,
      "availableReplicas:w collisionCount:w "
      "conditions:[@apps.v1.DeploymentCondition]=map(type)+merge/type observedGeneration:i "
      "readyReplicas:w replicas:w terminatingReplicas:w unavailableReplicas:w "
      "updatedReplicas:w" },
    { "apps.v1.DeploymentStrategy", false,
      "rollingUpdate:@apps.v1.RollingUpdateDeployment type:s" },
    { "apps.v1.ReplicaSet", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@apps.v1.ReplicaSetSpec "
      "status:@apps.v1.ReplicaSetStatus" },
    { "apps.v1.ReplicaSetCondition", false,
      "lastTransitionTime:t message:s reason:s status!:s type!:s" },
    { "apps.v1.ReplicaSetSpec", false,
      "minReadySeconds:w replicas:w selector!:@meta.v1.LabelSelector "
      "template:@core.v1.PodTemplateSpec" },
    { "apps.v1.ReplicaSetStatus", false,
      "availableReplicas:w conditions:[@apps.v1.ReplicaSetCondition]=map(type)+merge/type "
      "fullyLabeledReplicas:w observedGeneration:i readyReplicas:w replicas!:w "
      "terminatingReplicas:w" },
    { "apps.v1.RollingUpdateDaemonSet", false, "maxSurge:x maxUnavailable:x" },
    { "apps.v1.RollingUpdateDeployment", false, "maxSurge:x maxUnavailable:x" },
    { "apps.v1.RollingUpdateStatefulSetStrategy", false, "maxUnavailable:x partition:w" },
    { "apps.v1.StatefulSet", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@apps.v1.StatefulSetSpec "
      "status:@apps.v1.StatefulSetStatus" },
    { "apps.v1.StatefulSetCondition", false,
      "lastTransitionTime:t message:s reason:s status!:s type!:s" },
    { "apps.v1.StatefulSetOrdinals", false, "start:w" },
    { "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", false,
      "whenDeleted:s whenScaled:s" },
    { "apps.v1.StatefulSetSpec", false,
      "minReadySeconds:w ordinals:@apps.v1.StatefulSetOrdinals "
      "persistentVolumeClaimRetentionPolicy:@apps.v1."
      "StatefulSetPersistentVolumeClaimRetentionPolicy "
      "podManagementPolicy:s replicas:w revisionHistoryLimit:w "
      "selector!:@meta.v1.LabelSelector serviceName:s template!:@core.v1.PodTemplateSpec "
      "updateStrategy:@apps.v1.StatefulSetUpdateStrategy "
      "volumeClaimTemplates:[@core.v1.PersistentVolumeClaim]=atomic" },
    { "apps.v1.StatefulSetStatus", false,
      "availableReplicas:w collisionCount:w "
      "conditions:[@apps.v1.StatefulSetCondition]=map(type)+merge/type currentReplicas:w "
      "currentRevision:s observedGeneration:i readyReplicas:w replicas!:w updateRevision:s "
      "updatedReplicas:w" },
    { "apps.v1.StatefulSetUpdateStrategy", false,
      "rollingUpdate:@apps.v1.RollingUpdateStatefulSetStrategy type:s" },
    { "authentication.v1.BoundObjectReference", false, "apiVersion:s kind:s name:s uid:s" },
    { "authentication.v1.TokenRequest", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta "
      "spec!:@authentication.v1.TokenRequestSpec "
      "status:@authentication.v1.TokenRequestStatus" },
    { "authentication.v1.TokenRequestSpec", false,
      "audiences!:[s]=atomic boundObjectRef:@authentication.v1.BoundObjectReference "
      "expirationSeconds:i" },
    { "authentication.v1.TokenRequestStatus", false, "expirationTimestamp!:t token!:s" },
    { "batch.v1.CronJob", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@batch.v1.CronJobSpec "
      "status:@batch.v1.CronJobStatus" },
    { "batch.v1.CronJobSpec", false,
      "concurrencyPolicy:s failedJobsHistoryLimit:w jobTemplate!:@batch.v1.JobTemplateSpec "
      "schedule!:s startingDeadlineSeconds:i successfulJobsHistoryLimit:w suspend:b "
      "timeZone:s" },
    { "batch.v1.CronJobStatus", false,
      "active:[@core.v1.ObjectReference]=atomic lastScheduleTime:t lastSuccessfulTime:t" },
    { "batch.v1.Job", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@batch.v1.JobSpec "
      "status:@batch.v1.JobStatus" },
    { "batch.v1.JobCondition", false,
      "lastProbeTime:t lastTransitionTime:t message:s reason:s status!:s type!:s" },
    { "batch.v1.JobSpec", false,
      "activeDeadlineSeconds:i backoffLimit:w backoffLimitPerIndex:w completionMode:s "
      "completions:w managedBy:s manualSelector:b maxFailedIndexes:w parallelism:w "
      "podFailurePolicy:@batch.v1.PodFailurePolicy podReplacementPolicy:s "
      "selector:@meta.v1.LabelSelector successPolicy:@batch.v1.SuccessPolicy suspend:b "
      "template!:@core.v1.PodTemplateSpec ttlSecondsAfterFinished:w" },
    { "batch.v1.JobStatus", false,
      "active:w completedIndexes:s completionTime:t "
      "conditions:[@batch.v1.JobCondition]=atomic+merge/type failed:w failedIndexes:s "
      "ready:w startTime:t succeeded:w terminating:w "
      "uncountedTerminatedPods:@batch.v1.UncountedTerminatedPods" },
    { "batch.v1.JobTemplateSpec", false, "metadata:@meta.v1.ObjectMeta spec:@batch.v1.JobSpec" },
    { "batch.v1.PodFailurePolicy", false, "rules!:[@batch.v1.PodFailurePolicyRule]=atomic" },
    { "batch.v1.PodFailurePolicyOnExitCodesRequirement", false,
      "containerName:s operator!:s values!:[w]=set" },
    { "batch.v1.PodFailurePolicyOnPodConditionsPattern", false, "status:s type!:s" },
    { "batch.v1.PodFailurePolicyRule", false,
      "action!:s onExitCodes:@batch.v1.PodFailurePolicyOnExitCodesRequirement "
      "onPodConditions:[@batch.v1.PodFailurePolicyOnPodConditionsPattern]=atomic" },
    { "batch.v1.SuccessPolicy", false, "rules!:[@batch.v1.SuccessPolicyRule]=atomic" },
    { "batch.v1.SuccessPolicyRule", false, "succeededCount:w succeededIndexes:s" },
    { "batch.v1.UncountedTerminatedPods", false, "failed:[s]=set succeeded:[s]=set" },
    { "coordination.v1.Lease", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@coordination.v1.LeaseSpec" },
    { "coordination.v1.LeaseSpec", false,
      "acquireTime:u holderIdentity:s leaseDurationSeconds:w leaseTransitions:w "
      "preferredHolder:s renewTime:u strategy:s" },
    { "core.v1.AWSElasticBlockStoreVolumeSource", false,
      "fsType:s partition:w readOnly:b volumeID!:s" },
    { "core.v1.Affinity", false,
      "nodeAffinity:@core.v1.NodeAffinity podAffinity:@core.v1.PodAffinity "
      "podAntiAffinity:@core.v1.PodAntiAffinity" },
    { "core.v1.AppArmorProfile", false, "localhostProfile:s type!:s" },
    { "core.v1.AttachedVolume", false, "devicePath!:s name!:s" },
    { "core.v1.AzureDiskVolumeSource", false,
      "cachingMode:s~ReadWrite diskName!:s diskURI!:s fsType:s~ext4 kind:s~Shared "
      "readOnly:b" },
    { "core.v1.AzureFilePersistentVolumeSource", false,
      "readOnly:b secretName!:s secretNamespace:s shareName!:s" },
    { "core.v1.AzureFileVolumeSource", false, "readOnly:b secretName!:s shareName!:s" },
    { "core.v1.CSIPersistentVolumeSource", false,
      "controllerExpandSecretRef:@core.v1.SecretReference "
      "controllerPublishSecretRef:@core.v1.SecretReference driver!:s fsType:s "
      "nodeExpandSecretRef:@core.v1.SecretReference "
      "nodePublishSecretRef:@core.v1.SecretReference "
      "nodeStageSecretRef:@core.v1.SecretReference readOnly:b volumeAttributes:{s} "
      "volumeHandle!:s" },
    { "core.v1.CSIVolumeSource", false,
      "driver!:s fsType:s nodePublishSecretRef:@core.v1.LocalObjectReference readOnly:b "
      "volumeAttributes:{s}" },
    { "core.v1.Capabilities", false, "add:[s]=atomic drop:[s]=atomic" },
    { "core.v1.CephFSPersistentVolumeSource", false,
      "monitors!:[s]=atomic path:s readOnly:b secretFile:s "
      "secretRef:@core.v1.SecretReference user:s" },
    { "core.v1.CephFSVolumeSource", false,
      "monitors!:[s]=atomic path:s readOnly:b secretFile:s "
      "secretRef:@core.v1.LocalObjectReference user:s" },
    { "core.v1.CinderPersistentVolumeSource", false,
      "fsType:s readOnly:b secretRef:@core.v1.SecretReference volumeID!:s" },
    { "core.v1.CinderVolumeSource", false,
      "fsType:s readOnly:b secretRef:@core.v1.LocalObjectReference volumeID!:s" },
    { "core.v1.ClusterTrustBundleProjection", false,
      "labelSelector:@meta.v1.LabelSelector name:s optional:b path!:s signerName:s" },
    { "core.v1.ConfigMap", false,
      "apiVersion:s binaryData:{y} data:{s} immutable:b kind:s metadata:@meta.v1.ObjectMeta" },
    { "core.v1.ConfigMapEnvSource", false, "name:s optional:b" },
    { "core.v1.ConfigMapKeySelector", true, "key!:s name:s optional:b" },
    { "core.v1.ConfigMapNodeConfigSource", false,
      "kubeletConfigKey!:s name!:s namespace!:s resourceVersion:s uid:s" },
    { "core.v1.ConfigMapProjection", false, "items:[@core.v1.KeyToPath]=atomic name:s optional:b" },
    { "core.v1.ConfigMapVolumeSource", false,
      "defaultMode:w items:[@core.v1.KeyToPath]=atomic name:s optional:b" },
    { "core.v1.Container", false,
      "args:[s]=atomic command:[s]=atomic env:[@core.v1.EnvVar]=map(name)+merge/name "
      "envFrom:[@core.v1.EnvFromSource]=atomic image:s imagePullPolicy:s "
      "lifecycle:@core.v1.Lifecycle livenessProbe:@core.v1.Probe name!:s "
      "ports:[@core.v1.ContainerPort]=map(containerPort,protocol)+merge/containerPort "
      "readinessProbe:@core.v1.Probe resizePolicy:[@core.v1.ContainerResizePolicy]=atomic "
      "resources:@core.v1.ResourceRequirements restartPolicy:s "
      "restartPolicyRules:[@core.v1.ContainerRestartRule]=atomic "
      "securityContext:@core.v1.SecurityContext startupProbe:@core.v1.Probe stdin:b "
      "stdinOnce:b terminationMessagePath:s terminationMessagePolicy:s tty:b "
      "volumeDevices:[@core.v1.VolumeDevice]=map(devicePath)+merge/devicePath "
      "volumeMounts:[@core.v1.VolumeMount]=map(mountPath)+merge/mountPath workingDir:s" },
    { "core.v1.ContainerExtendedResourceRequest", false,
      "containerName!:s requestName!:s resourceName!:s" },
    { "core.v1.ContainerImage", false, "names:[s]=atomic sizeBytes:i" },
    { "core.v1.ContainerPort", false,
      "containerPort!:w hostIP:s hostPort:w name:s protocol:s~TCP" },
    { "core.v1.ContainerResizePolicy", false, "resourceName!:s restartPolicy!:s" },
    { "core.v1.ContainerRestartRule", false,
      "action!:s exitCodes:@core.v1.ContainerRestartRuleOnExitCodes" },
    { "core.v1.ContainerRestartRuleOnExitCodes", false, "operator!:s values:[w]=set" },
    { "core.v1.ContainerState", false,
      "running:@core.v1.ContainerStateRunning terminated:@core.v1.ContainerStateTerminated "
      "waiting:@core.v1.ContainerStateWaiting" },
    { "core.v1.ContainerStateRunning", false, "startedAt:t" },
    { "core.v1.ContainerStateTerminated", false,
      "containerID:s exitCode!:w finishedAt:t message:s reason:s signal:w startedAt:t" },
    { "core.v1.ContainerStateWaiting", false, "message:s reason:s" },
    { "core.v1.ContainerStatus", false,
      "allocatedResources:{q} "
      "allocatedResourcesStatus:[@core.v1.ResourceStatus]=map(name)+merge/name "
      "containerID:s image!:s imageID!:s lastState:@core.v1.ContainerState name!:s ready!:b "
      "resources:@core.v1.ResourceRequirements restartCount!:w started:b "
      "state:@core.v1.ContainerState stopSignal:s user:@core.v1.ContainerUser "
      "volumeMounts:[@core.v1.VolumeMountStatus]=map(mountPath)+merge/mountPath" },
    { "core.v1.ContainerUser", false, "linux:@core.v1.LinuxContainerUser" },
    { "core.v1.DaemonEndpoint", false, "Port!:w" },
    { "core.v1.DownwardAPIProjection", false, "items:[@core.v1.DownwardAPIVolumeFile]=atomic" },
    { "core.v1.DownwardAPIVolumeFile", false,
      "fieldRef:@core.v1.ObjectFieldSelector mode:w path!:s "
      "resourceFieldRef:@core.v1.ResourceFieldSelector" },
    { "core.v1.DownwardAPIVolumeSource", false,
      "defaultMode:w items:[@core.v1.DownwardAPIVolumeFile]=atomic" },
    { "core.v1.EmptyDirVolumeSource", false, "medium:s sizeLimit:q" },
    { "core.v1.EnvFromSource", false,
      "configMapRef:@core.v1.ConfigMapEnvSource prefix:s secretRef:@core.v1.SecretEnvSource" },
    { "core.v1.EnvVar", false, "name!:s value:s valueFrom:@core.v1.EnvVarSource" },
    { "core.v1.EnvVarSource", false,
      "configMapKeyRef:@core.v1.ConfigMapKeySelector fieldRef:@core.v1.ObjectFieldSelector "
      "fileKeyRef:@core.v1.FileKeySelector resourceFieldRef:@core.v1.ResourceFieldSelector "
      "secretKeyRef:@core.v1.SecretKeySelector" },
    { "core.v1.EphemeralContainer", false,
      "args:[s]=atomic command:[s]=atomic env:[@core.v1.EnvVar]=map(name)+merge/name "
      "envFrom:[@core.v1.EnvFromSource]=atomic image:s imagePullPolicy:s "
      "lifecycle:@core.v1.Lifecycle livenessProbe:@core.v1.Probe name!:s "
      "ports:[@core.v1.ContainerPort]=map(containerPort,protocol)+merge/containerPort "
      "readinessProbe:@core.v1.Probe resizePolicy:[@core.v1.ContainerResizePolicy]=atomic "
      "resources:@core.v1.ResourceRequirements restartPolicy:s "
      "restartPolicyRules:[@core.v1.ContainerRestartRule]=atomic "
      "securityContext:@core.v1.SecurityContext startupProbe:@core.v1.Probe stdin:b "
      "stdinOnce:b targetContainerName:s terminationMessagePath:s "
      "terminationMessagePolicy:s tty:b "
      "volumeDevices:[@core.v1.VolumeDevice]=map(devicePath)+merge/devicePath "
      "volumeMounts:[@core.v1.VolumeMount]=map(mountPath)+merge/mountPath workingDir:s" },
    { "core.v1.EphemeralVolumeSource", false,
      "volumeClaimTemplate:@core.v1.PersistentVolumeClaimTemplate" },
    { "core.v1.Event", false,
      "action:s apiVersion:s count:w eventTime:u firstTimestamp:t "
      "involvedObject!:@core.v1.ObjectReference kind:s lastTimestamp:t message:s "
      "metadata!:@meta.v1.ObjectMeta reason:s related:@core.v1.ObjectReference "
      "reportingComponent:s reportingInstance:s series:@core.v1.EventSeries "
      "source:@core.v1.EventSource type:s" },
    { "core.v1.EventSeries", false, "count:w lastObservedTime:u" },
    { "core.v1.EventSource", false, "component:s host:s" },
    { "core.v1.ExecAction", false, "command:[s]=atomic" },
    { "core.v1.FCVolumeSource", false,
      "fsType:s lun:w readOnly:b targetWWNs:[s]=atomic wwids:[s]=atomic" },
    { "core.v1.FileKeySelector", true, "key!:s optional:b path!:s volumeName!:s" },
    { "core.v1.FlexPersistentVolumeSource", false,
      "driver!:s fsType:s options:{s} readOnly:b secretRef:@core.v1.SecretReference" },
    { "core.v1.FlexVolumeSource", false,
      "driver!:s fsType:s options:{s} readOnly:b secretRef:@core.v1.LocalObjectReference" },
    { "core.v1.FlockerVolumeSource", false, "datasetName:s datasetUUID:s" },
    { "core.v1.GCEPersistentDiskVolumeSource", false, "fsType:s partition:w pdName!:s readOnly:b" },
    { "core.v1.GRPCAction", false, "port!:w service:s" },
    { "core.v1.GitRepoVolumeSource", false, "directory:s repository!:s revision:s" },
    { "core.v1.GlusterfsPersistentVolumeSource", false,
      "endpoints!:s endpointsNamespace:s path!:s readOnly:b" },
    { "core.v1.GlusterfsVolumeSource", false, "endpoints!:s path!:s readOnly:b" },
    { "core.v1.HTTPGetAction", false,
      "host:s httpHeaders:[@core.v1.HTTPHeader]=atomic path:s port!:x scheme:s" },
    { "core.v1.HTTPHeader", false, "name!:s value!:s" },
    { "core.v1.HostAlias", false, "hostnames:[s]=atomic ip!:s" },
    { "core.v1.HostIP", false, "ip!:s" },
    { "core.v1.HostPathVolumeSource", false, "path!:s type:s" },
    { "core.v1.ISCSIPersistentVolumeSource", false,
      "chapAuthDiscovery:b chapAuthSession:b fsType:s initiatorName:s iqn!:s "
      "iscsiInterface:s~default lun!:w portals:[s]=atomic readOnly:b "
      "secretRef:@core.v1.SecretReference targetPortal!:s" },
    { "core.v1.ISCSIVolumeSource", false,
      "chapAuthDiscovery:b chapAuthSession:b fsType:s initiatorName:s iqn!:s "
      "iscsiInterface:s~default lun!:w portals:[s]=atomic readOnly:b "
      "secretRef:@core.v1.LocalObjectReference targetPortal!:s" },
    { "core.v1.ImageVolumeSource", false, "pullPolicy:s reference:s" },
    { "core.v1.KeyToPath", false, "key!:s mode:w path!:s" },
    { "core.v1.Lifecycle", false,
      "postStart:@core.v1.LifecycleHandler preStop:@core.v1.LifecycleHandler stopSignal:s" },
    { "core.v1.LifecycleHandler", false,
      "exec:@core.v1.ExecAction httpGet:@core.v1.HTTPGetAction sleep:@core.v1.SleepAction "
      "tcpSocket:@core.v1.TCPSocketAction" },
    { "core.v1.LinuxContainerUser", false, "gid!:i supplementalGroups:[i]=atomic uid!:i" },
    { "core.v1.LocalObjectReference", true, "name:s" },
    { "core.v1.LocalVolumeSource", false, "fsType:s path!:s" },
    { "core.v1.ModifyVolumeStatus", false, "status!:s targetVolumeAttributesClassName:s" },
    { "core.v1.NFSVolumeSource", false, "path!:s readOnly:b server!:s" },
    { "core.v1.Namespace", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@core.v1.NamespaceSpec "
      "status:@core.v1.NamespaceStatus" },
    { "core.v1.NamespaceCondition", false,
      "lastTransitionTime:t message:s reason:s status!:s type!:s" },
    { "core.v1.NamespaceSpec", false, "finalizers:[s]=atomic" },
    { "core.v1.NamespaceStatus", false,
      "conditions:[@core.v1.NamespaceCondition]=map(type)+merge/type phase:s" },
    { "core.v1.Node", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@core.v1.NodeSpec "
      "status:@core.v1.NodeStatus" },
    { "core.v1.NodeAddress", false, "address!:s type!:s" },
    { "core.v1.NodeAffinity", false,
      ""
      "preferredDuringSchedulingIgnoredDuringExecution:[@core.v1.PreferredSchedulingTerm]=atomic "
      "requiredDuringSchedulingIgnoredDuringExecution:@core.v1.NodeSelector" },
    { "core.v1.NodeCondition", false,
      "lastHeartbeatTime:t lastTransitionTime:t message:s reason:s status!:s type!:s" },
    { "core.v1.NodeConfigSource", false, "configMap:@core.v1.ConfigMapNodeConfigSource" },
    { "core.v1.NodeConfigStatus", false,
      "active:@core.v1.NodeConfigSource assigned:@core.v1.NodeConfigSource error:s "
      "lastKnownGood:@core.v1.NodeConfigSource" },
    { "core.v1.NodeDaemonEndpoints", false, "kubeletEndpoint:@core.v1.DaemonEndpoint" },
    { "core.v1.NodeFeatures", false, "supplementalGroupsPolicy:b" },
    { "core.v1.NodeRuntimeHandler", false, "features:@core.v1.NodeRuntimeHandlerFeatures name:s" },
    { "core.v1.NodeRuntimeHandlerFeatures", false, "recursiveReadOnlyMounts:b userNamespaces:b" },
    { "core.v1.NodeSelector", true, "nodeSelectorTerms!:[@core.v1.NodeSelectorTerm]=atomic" },
    { "core.v1.NodeSelectorRequirement", false, "key!:s operator!:s values:[s]=atomic" },
    { "core.v1.NodeSelectorTerm", true,
      "matchExpressions:[@core.v1.NodeSelectorRequirement]=atomic "
      "matchFields:[@core.v1.NodeSelectorRequirement]=atomic" },
    { "core.v1.NodeSpec", false,
      "configSource:@core.v1.NodeConfigSource externalID:s podCIDR:s podCIDRs:[s]=set+merge "
      "providerID:s taints:[@core.v1.Taint]=atomic unschedulable:b" },
    { "core.v1.NodeStatus", false,
      "addresses:[@core.v1.NodeAddress]=map(type)+merge/type allocatable:{q} capacity:{q} "
      "conditions:[@core.v1.NodeCondition]=map(type)+merge/type "
      "config:@core.v1.NodeConfigStatus daemonEndpoints:@core.v1.NodeDaemonEndpoints "
      "declaredFeatures:[s]=atomic features:@core.v1.NodeFeatures "
      "images:[@core.v1.ContainerImage]=atomic nodeInfo:@core.v1.NodeSystemInfo phase:s "
      "runtimeHandlers:[@core.v1.NodeRuntimeHandler]=atomic "
      "volumesAttached:[@core.v1.AttachedVolume]=atomic volumesInUse:[s]=atomic" },
    { "core.v1.NodeSwapStatus", false, "capacity:i" },
    { "core.v1.NodeSystemInfo", false,
      "architecture!:s bootID!:s containerRuntimeVersion!:s kernelVersion!:s "
      "kubeProxyVersion!:s kubeletVersion!:s machineID!:s operatingSystem!:s osImage!:s "
      "swap:@core.v1.NodeSwapStatus systemUUID!:s" },
    { "core.v1.ObjectFieldSelector", true, "apiVersion:s fieldPath!:s" },
    { "core.v1.ObjectReference", true,
      "apiVersion:s fieldPath:s kind:s name:s namespace:s resourceVersion:s uid:s" },
    { "core.v1.PersistentVolumeClaim", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta "
      "spec:@core.v1.PersistentVolumeClaimSpec status:@core.v1.PersistentVolumeClaimStatus" },
    { "core.v1.PersistentVolumeClaimCondition", false,
      "lastProbeTime:t lastTransitionTime:t message:s reason:s status!:s type!:s" },
    { "core.v1.PersistentVolumeClaimSpec", false,
      "accessModes:[s]=atomic dataSource:@core.v1.TypedLocalObjectReference "
      "dataSourceRef:@core.v1.TypedObjectReference "
      "resources:@core.v1.VolumeResourceRequirements selector:@meta.v1.LabelSelector "
      "storageClassName:s volumeAttributesClassName:s volumeMode:s volumeName:s" },
    { "core.v1.PersistentVolumeClaimStatus", false,
      "accessModes:[s]=atomic allocatedResourceStatuses:{s} allocatedResources:{q} "
      "capacity:{q} "
      "conditions:[@core.v1.PersistentVolumeClaimCondition]=map(type)+merge/type "
      "currentVolumeAttributesClassName:s modifyVolumeStatus:@core.v1.ModifyVolumeStatus "
      "phase:s" },
    { "core.v1.PersistentVolumeClaimTemplate", false,
      "metadata:@meta.v1.ObjectMeta spec!:@core.v1.PersistentVolumeClaimSpec" },
    { "core.v1.PersistentVolumeClaimVolumeSource", false, "claimName!:s readOnly:b" },
    { "core.v1.PersistentVolumeSpec", false,
      "accessModes:[s]=atomic "
      "awsElasticBlockStore:@core.v1.AWSElasticBlockStoreVolumeSource "
      "azureDisk:@core.v1.AzureDiskVolumeSource "
      "azureFile:@core.v1.AzureFilePersistentVolumeSource capacity:{q} "
      "cephfs:@core.v1.CephFSPersistentVolumeSource "
      "cinder:@core.v1.CinderPersistentVolumeSource claimRef:@core.v1.ObjectReference "
      "csi:@core.v1.CSIPersistentVolumeSource fc:@core.v1.FCVolumeSource "
      "flexVolume:@core.v1.FlexPersistentVolumeSource flocker:@core.v1.FlockerVolumeSource "
      "gcePersistentDisk:@core.v1.GCEPersistentDiskVolumeSource "
      "glusterfs:@core.v1.GlusterfsPersistentVolumeSource "
      "hostPath:@core.v1.HostPathVolumeSource iscsi:@core.v1.ISCSIPersistentVolumeSource "
      "local:@core.v1.LocalVolumeSource mountOptions:[s]=atomic "
      "nfs:@core.v1.NFSVolumeSource nodeAffinity:@core.v1.VolumeNodeAffinity "
      "persistentVolumeReclaimPolicy:s "
      "photonPersistentDisk:@core.v1.PhotonPersistentDiskVolumeSource "
      "portworxVolume:@core.v1.PortworxVolumeSource quobyte:@core.v1.QuobyteVolumeSource "
      "rbd:@core.v1.RBDPersistentVolumeSource "
      "scaleIO:@core.v1.ScaleIOPersistentVolumeSource storageClassName:s "
      "storageos:@core.v1.StorageOSPersistentVolumeSource volumeAttributesClassName:s "
      "volumeMode:s vsphereVolume:@core.v1.VsphereVirtualDiskVolumeSource" },
    { "core.v1.PhotonPersistentDiskVolumeSource", false, "fsType:s pdID!:s" },
    { "core.v1.Pod", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta spec:@core.v1.PodSpec "
      "status:@core.v1.PodStatus" },
    { "core.v1.PodAffinity", false,
      ""
      "preferredDuringSchedulingIgnoredDuringExecution:[@core.v1.WeightedPodAffinityTerm]=atomic "
      "requiredDuringSchedulingIgnoredDuringExecution:[@core.v1.PodAffinityTerm]=atomic" },
    { "core.v1.PodAffinityTerm", false,
      "labelSelector:@meta.v1.LabelSelector matchLabelKeys:[s]=atomic "
      "mismatchLabelKeys:[s]=atomic namespaceSelector:@meta.v1.LabelSelector "
      "namespaces:[s]=atomic topologyKey!:s" },
    { "core.v1.PodAntiAffinity", false,
      ""
      "preferredDuringSchedulingIgnoredDuringExecution:[@core.v1.WeightedPodAffinityTerm]=atomic "
      "requiredDuringSchedulingIgnoredDuringExecution:[@core.v1.PodAffinityTerm]=atomic" },
    { "core.v1.PodCertificateProjection", false,
      "certificateChainPath:s credentialBundlePath:s keyPath:s keyType!:s "
      "maxExpirationSeconds:w signerName!:s userAnnotations:{s}" },
    { "core.v1.PodCondition", false,
      "lastProbeTime:t lastTransitionTime:t message:s observedGeneration:i reason:s "
      "status!:s type!:s" },
    { "core.v1.PodDNSConfig", false,
      "nameservers:[s]=atomic options:[@core.v1.PodDNSConfigOption]=atomic "
      "searches:[s]=atomic" },
    { "core.v1.PodDNSConfigOption", false, "name:s value:s" },
    { "core.v1.PodExtendedResourceClaimStatus", false,
      "requestMappings!:[@core.v1.ContainerExtendedResourceRequest]=atomic "
      "resourceClaimName!:s" },
    { "core.v1.PodIP", false, "ip!:s" },
    { "core.v1.PodOS", false, "name!:s" },
    { "core.v1.PodReadinessGate", false, "conditionType!:s" },
    { "core.v1.PodResourceClaim", false,
      "name!:s resourceClaimName:s resourceClaimTemplateName:s" },
    { "core.v1.PodResourceClaimStatus", false, "name!:s resourceClaimName:s" },
    { "core.v1.PodSchedulingGate", false, "name!:s" },
    { "core.v1.PodSecurityContext", false,
      "appArmorProfile:@core.v1.AppArmorProfile fsGroup:i fsGroupChangePolicy:s "
      "runAsGroup:i runAsNonRoot:b runAsUser:i seLinuxChangePolicy:s "
      "seLinuxOptions:@core.v1.SELinuxOptions seccompProfile:@core.v1.SeccompProfile "
      "supplementalGroups:[i]=atomic supplementalGroupsPolicy:s "
      "sysctls:[@core.v1.Sysctl]=atomic "
      "windowsOptions:@core.v1.WindowsSecurityContextOptions" },
    { "core.v1.PodSpec", false,
      "activeDeadlineSeconds:i affinity:@core.v1.Affinity automountServiceAccountToken:b "
      "containers!:[@core.v1.Container]=map(name)+merge/name "
      "dnsConfig:@core.v1.PodDNSConfig dnsPolicy:s enableServiceLinks:b "
      "ephemeralContainers:[@core.v1.EphemeralContainer]=map(name)+merge/name "
      "hostAliases:[@core.v1.HostAlias]=map(ip)+merge/ip hostIPC:b hostNetwork:b hostPID:b "
      "hostUsers:b hostname:s hostnameOverride:s "
      "imagePullSecrets:[@core.v1.LocalObjectReference]=map(name)+merge/name "
      "initContainers:[@core.v1.Container]=map(name)+merge/name nodeName:s "
      "nodeSelector:{s}=atomic os:@core.v1.PodOS overhead:{q} preemptionPolicy:s priority:w "
      "priorityClassName:s readinessGates:[@core.v1.PodReadinessGate]=atomic "
      "resourceClaims:[@core.v1.PodResourceClaim]=map(name)+merge,retainKeys/name "
      "resources:@core.v1.ResourceRequirements restartPolicy:s runtimeClassName:s "
      "schedulerName:s schedulingGates:[@core.v1.PodSchedulingGate]=map(name)+merge/name "
      "securityContext:@core.v1.PodSecurityContext serviceAccount:s serviceAccountName:s "
      "setHostnameAsFQDN:b shareProcessNamespace:b subdomain:s "
      "terminationGracePeriodSeconds:i tolerations:[@core.v1.Toleration]=atomic "
      "topologySpreadConstraints:[@core.v1.TopologySpreadConstraint]=map(topologyKey,"
      "whenUnsatisfiable)+merge/topologyKey "
      "volumes:[@core.v1.Volume]=map(name)+merge,retainKeys/name "
      "workloadRef:@core.v1.WorkloadReference" },
    { "core.v1.PodStatus", false,
      "allocatedResources:{q} conditions:[@core.v1.PodCondition]=map(type)+merge/type "
      "containerStatuses:[@core.v1.ContainerStatus]=atomic "
      "ephemeralContainerStatuses:[@core.v1.ContainerStatus]=atomic "
      "extendedResourceClaimStatus:@core.v1.PodExtendedResourceClaimStatus hostIP:s "
      "hostIPs:[@core.v1.HostIP]=atomic+merge/ip "
      "initContainerStatuses:[@core.v1.ContainerStatus]=atomic message:s "
      "nominatedNodeName:s observedGeneration:i phase:s podIP:s "
      "podIPs:[@core.v1.PodIP]=map(ip)+merge/ip qosClass:s reason:s resize:s "
      "resourceClaimStatuses:[@core.v1.PodResourceClaimStatus]=map(name)+merge,retainKeys/name "
      "resources:@core.v1.ResourceRequirements startTime:t" },
    { "core.v1.PodTemplateSpec", false, "metadata:@meta.v1.ObjectMeta spec:@core.v1.PodSpec" },
    { "core.v1.PortworxVolumeSource", false, "fsType:s readOnly:b volumeID!:s" },
    { "core.v1.PreferredSchedulingTerm", false, "preference!:@core.v1.NodeSelectorTerm weight!:w" },
    { "core.v1.Probe", false,
      "exec:@core.v1.ExecAction failureThreshold:w grpc:@core.v1.GRPCAction "
      "httpGet:@core.v1.HTTPGetAction initialDelaySeconds:w periodSeconds:w "
      "successThreshold:w tcpSocket:@core.v1.TCPSocketAction "
      "terminationGracePeriodSeconds:i timeoutSeconds:w" },
    { "core.v1.ProjectedVolumeSource", false,
      "defaultMode:w sources:[@core.v1.VolumeProjection]=atomic" },
    { "core.v1.QuobyteVolumeSource", false,
      "group:s readOnly:b registry!:s tenant:s user:s volume!:s" },
    { "core.v1.RBDPersistentVolumeSource", false,
      "fsType:s image!:s keyring:s~/etc/ceph/keyring monitors!:[s]=atomic pool:s~rbd "
      "readOnly:b secretRef:@core.v1.SecretReference user:s~admin" },
    { "core.v1.RBDVolumeSource", false,
      "fsType:s image!:s keyring:s~/etc/ceph/keyring monitors!:[s]=atomic pool:s~rbd "
      "readOnly:b secretRef:@core.v1.LocalObjectReference user:s~admin" },
    { "core.v1.ResourceClaim", false, "name!:s request:s" },
    { "core.v1.ResourceFieldSelector", true, "containerName:s divisor:q resource!:s" },
    { "core.v1.ResourceHealth", false, "health:s resourceID!:s" },
    { "core.v1.ResourceRequirements", false,
      "claims:[@core.v1.ResourceClaim]=map(name) limits:{q} requests:{q}" },
    { "core.v1.ResourceStatus", false,
      "name!:s resources:[@core.v1.ResourceHealth]=map(resourceID)" },
    { "core.v1.SELinuxOptions", false, "level:s role:s type:s user:s" },
    { "core.v1.ScaleIOPersistentVolumeSource", false,
      "fsType:s~xfs gateway!:s protectionDomain:s readOnly:b "
      "secretRef!:@core.v1.SecretReference sslEnabled:b storageMode:s~ThinProvisioned "
      "storagePool:s system!:s volumeName:s" },
    { "core.v1.ScaleIOVolumeSource", false,
      "fsType:s~xfs gateway!:s protectionDomain:s readOnly:b "
      "secretRef!:@core.v1.LocalObjectReference sslEnabled:b storageMode:s~ThinProvisioned "
      "storagePool:s system!:s volumeName:s" },
    { "core.v1.SeccompProfile", false, "localhostProfile:s type!:s" },
    { "core.v1.Secret", false,
      "apiVersion:s data:{y} immutable:b kind:s metadata:@meta.v1.ObjectMeta stringData:{s} "
      "type:s" },
    { "core.v1.SecretEnvSource", false, "name:s optional:b" },
    { "core.v1.SecretKeySelector", true, "key!:s name:s optional:b" },
    { "core.v1.SecretProjection", false, "items:[@core.v1.KeyToPath]=atomic name:s optional:b" },
    { "core.v1.SecretReference", true, "name:s namespace:s" },
    { "core.v1.SecretVolumeSource", false,
      "defaultMode:w items:[@core.v1.KeyToPath]=atomic optional:b secretName:s" },
    { "core.v1.SecurityContext", false,
      "allowPrivilegeEscalation:b appArmorProfile:@core.v1.AppArmorProfile "
      "capabilities:@core.v1.Capabilities privileged:b procMount:s readOnlyRootFilesystem:b "
      "runAsGroup:i runAsNonRoot:b runAsUser:i seLinuxOptions:@core.v1.SELinuxOptions "
      "seccompProfile:@core.v1.SeccompProfile "
      "windowsOptions:@core.v1.WindowsSecurityContextOptions" },
    { "core.v1.ServiceAccount", false,
      "apiVersion:s automountServiceAccountToken:b "
      "imagePullSecrets:[@core.v1.LocalObjectReference]=atomic kind:s "
      "metadata:@meta.v1.ObjectMeta secrets:[@core.v1.ObjectReference]=map(name)+merge/name" },
    { "core.v1.ServiceAccountTokenProjection", false, "audience:s expirationSeconds:i path!:s" },
    { "core.v1.SleepAction", false, "seconds!:i" },
    { "core.v1.StorageOSPersistentVolumeSource", false,
      "fsType:s readOnly:b secretRef:@core.v1.ObjectReference volumeName:s "
      "volumeNamespace:s" },
    { "core.v1.StorageOSVolumeSource", false,
      "fsType:s readOnly:b secretRef:@core.v1.LocalObjectReference volumeName:s "
      "volumeNamespace:s" },
    { "core.v1.Sysctl", false, "name!:s value!:s" },
    { "core.v1.TCPSocketAction", false, "host:s port!:x" },
    { "core.v1.Taint", false, "effect!:s key!:s timeAdded:t value:s" },
    { "core.v1.Toleration", false, "effect:s key:s operator:s tolerationSeconds:i value:s" },
    { "core.v1.TopologySpreadConstraint", false,
      "labelSelector:@meta.v1.LabelSelector matchLabelKeys:[s]=atomic maxSkew!:w "
      "minDomains:w nodeAffinityPolicy:s nodeTaintsPolicy:s topologyKey!:s "
      "whenUnsatisfiable!:s" },
    { "core.v1.TypedLocalObjectReference", true, "apiGroup:s kind!:s name!:s" },
    { "core.v1.TypedObjectReference", false, "apiGroup:s kind!:s name!:s namespace:s" },
    { "core.v1.Volume", false,
      "awsElasticBlockStore:@core.v1.AWSElasticBlockStoreVolumeSource "
      "azureDisk:@core.v1.AzureDiskVolumeSource azureFile:@core.v1.AzureFileVolumeSource "
      "cephfs:@core.v1.CephFSVolumeSource cinder:@core.v1.CinderVolumeSource "
      "configMap:@core.v1.ConfigMapVolumeSource csi:@core.v1.CSIVolumeSource "
      "downwardAPI:@core.v1.DownwardAPIVolumeSource emptyDir:@core.v1.EmptyDirVolumeSource "
      "ephemeral:@core.v1.EphemeralVolumeSource fc:@core.v1.FCVolumeSource "
      "flexVolume:@core.v1.FlexVolumeSource flocker:@core.v1.FlockerVolumeSource "
      "gcePersistentDisk:@core.v1.GCEPersistentDiskVolumeSource "
      "gitRepo:@core.v1.GitRepoVolumeSource glusterfs:@core.v1.GlusterfsVolumeSource "
      "hostPath:@core.v1.HostPathVolumeSource image:@core.v1.ImageVolumeSource "
      "iscsi:@core.v1.ISCSIVolumeSource name!:s nfs:@core.v1.NFSVolumeSource "
      "persistentVolumeClaim:@core.v1.PersistentVolumeClaimVolumeSource "
      "photonPersistentDisk:@core.v1.PhotonPersistentDiskVolumeSource "
      "portworxVolume:@core.v1.PortworxVolumeSource "
      "projected:@core.v1.ProjectedVolumeSource quobyte:@core.v1.QuobyteVolumeSource "
      "rbd:@core.v1.RBDVolumeSource scaleIO:@core.v1.ScaleIOVolumeSource "
      "secret:@core.v1.SecretVolumeSource storageos:@core.v1.StorageOSVolumeSource "
      "vsphereVolume:@core.v1.VsphereVirtualDiskVolumeSource" },
    { "core.v1.VolumeDevice", false, "devicePath!:s name!:s" },
    { "core.v1.VolumeMount", false,
      "mountPath!:s mountPropagation:s name!:s readOnly:b recursiveReadOnly:s subPath:s "
      "subPathExpr:s" },
    { "core.v1.VolumeMountStatus", false, "mountPath!:s name!:s readOnly:b recursiveReadOnly:s" },
    { "core.v1.VolumeNodeAffinity", false, "required:@core.v1.NodeSelector" },
    { "core.v1.VolumeProjection", false,
      "clusterTrustBundle:@core.v1.ClusterTrustBundleProjection "
      "configMap:@core.v1.ConfigMapProjection downwardAPI:@core.v1.DownwardAPIProjection "
      "podCertificate:@core.v1.PodCertificateProjection secret:@core.v1.SecretProjection "
      "serviceAccountToken:@core.v1.ServiceAccountTokenProjection" },
    { "core.v1.VolumeResourceRequirements", false, "limits:{q} requests:{q}" },
    { "core.v1.VsphereVirtualDiskVolumeSource", false,
      "fsType:s storagePolicyID:s storagePolicyName:s volumePath!:s" },
    { "core.v1.WeightedPodAffinityTerm", false,
      "podAffinityTerm!:@core.v1.PodAffinityTerm weight!:w" },
    { "core.v1.WindowsSecurityContextOptions", false,
      "gmsaCredentialSpec:s gmsaCredentialSpecName:s hostProcess:b runAsUserName:s" },
    { "core.v1.WorkloadReference", false, "name!:s podGroup!:s podGroupReplicaKey:s" },
    { "events.v1.Event", false,
      "action:s apiVersion:s deprecatedCount:w deprecatedFirstTimestamp:t "
      "deprecatedLastTimestamp:t deprecatedSource:@core.v1.EventSource eventTime!:u kind:s "
      "metadata:@meta.v1.ObjectMeta note:s reason:s regarding:@core.v1.ObjectReference "
      "related:@core.v1.ObjectReference reportingController:s reportingInstance:s "
      "series:@events.v1.EventSeries type:s" },
    { "events.v1.EventSeries", false, "count!:w lastObservedTime!:u" },
    { "meta.v1.Condition", false,
      "lastTransitionTime!:t message!:s observedGeneration:i reason!:s status!:s type!:s" },
    { "meta.v1.DeleteOptions", false,
      "apiVersion:s dryRun:[s]=atomic gracePeriodSeconds:i "
      "ignoreStoreReadErrorWithClusterBreakingPotential:b kind:s orphanDependents:b "
      "preconditions:@meta.v1.Preconditions propagationPolicy:s" },
    { "meta.v1.LabelSelector", true,
      "matchExpressions:[@meta.v1.LabelSelectorRequirement]=atomic matchLabels:{s}" },
    { "meta.v1.LabelSelectorRequirement", false, "key!:s operator!:s values:[s]=atomic" },
    { "meta.v1.ManagedFieldsEntry", false,
      "apiVersion:s fieldsType:s fieldsV1:a manager:s operation:s subresource:s time:t" },
    { "meta.v1.ObjectMeta", false,
      "annotations:{s} creationTimestamp:t deletionGracePeriodSeconds:i deletionTimestamp:t "
      "finalizers:[s]=set+merge generateName:s generation:i labels:{s} "
      "managedFields:[@meta.v1.ManagedFieldsEntry]=atomic name:s namespace:s "
      "ownerReferences:[@meta.v1.OwnerReference]=map(uid)+merge/uid resourceVersion:s "
      "selfLink:s uid:s" },
    { "meta.v1.OwnerReference", true,
      "apiVersion!:s blockOwnerDeletion:b controller:b kind!:s name!:s uid!:s" },
    { "meta.v1.Preconditions", false, "resourceVersion:s uid:s" },
    { "policy.v1.Eviction", false,
      "apiVersion:s deleteOptions:@meta.v1.DeleteOptions kind:s "
      "metadata:@meta.v1.ObjectMeta" },
    { "policy.v1.PodDisruptionBudget", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta "
      "spec:@policy.v1.PodDisruptionBudgetSpec status:@policy.v1.PodDisruptionBudgetStatus" },
    { "policy.v1.PodDisruptionBudgetSpec", false,
      "maxUnavailable:x minAvailable:x selector:@meta.v1.LabelSelector+replace "
      "unhealthyPodEvictionPolicy:s" },
    { "policy.v1.PodDisruptionBudgetStatus", false,
      "conditions:[@meta.v1.Condition]=map(type)+merge/type currentHealthy!:w "
      "desiredHealthy!:w disruptedPods:{t} disruptionsAllowed!:w expectedPods!:w "
      "observedGeneration:i" },
    { "rbac.v1.AggregationRule", false, "clusterRoleSelectors:[@meta.v1.LabelSelector]=atomic" },
    { "rbac.v1.ClusterRole", false,
      "aggregationRule:@rbac.v1.AggregationRule apiVersion:s kind:s "
      "metadata:@meta.v1.ObjectMeta rules:[@rbac.v1.PolicyRule]=atomic" },
    { "rbac.v1.ClusterRoleBinding", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta roleRef!:@rbac.v1.RoleRef "
      "subjects:[@rbac.v1.Subject]=atomic" },
    { "rbac.v1.PolicyRule", false,
      "apiGroups:[s]=atomic nonResourceURLs:[s]=atomic resourceNames:[s]=atomic "
      "resources:[s]=atomic verbs!:[s]=atomic" },
    { "rbac.v1.Role", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta rules:[@rbac.v1.PolicyRule]=atomic" },
    { "rbac.v1.RoleBinding", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta roleRef!:@rbac.v1.RoleRef "
      "subjects:[@rbac.v1.Subject]=atomic" },
    { "rbac.v1.RoleRef", true, "apiGroup!:s kind!:s name!:s" },
    { "rbac.v1.Subject", true, "apiGroup:s kind!:s name!:s namespace:s" },
    { "storage.v1.VolumeAttachment", false,
      "apiVersion:s kind:s metadata:@meta.v1.ObjectMeta "
      "spec!:@storage.v1.VolumeAttachmentSpec status:@storage.v1.VolumeAttachmentStatus" },
    { "storage.v1.VolumeAttachmentSource", false,
      "inlineVolumeSpec:@core.v1.PersistentVolumeSpec persistentVolumeName:s" },
    { "storage.v1.VolumeAttachmentSpec", false,
      "attacher!:s nodeName!:s source!:@storage.v1.VolumeAttachmentSource" },
    { "storage.v1.VolumeAttachmentStatus", false,
      "attachError:@storage.v1.VolumeError attached!:b attachmentMetadata:{s} "
      "detachError:@storage.v1.VolumeError" },
    { "storage.v1.VolumeError", false, "errorCode:w message:s time:t" },
};
const uint32_t builtin_types_n = ARRAY_LEN(builtin_types);

const struct builtin_kind_type builtin_kind_types[] = {
    { "", "ConfigMap", "core.v1.ConfigMap" },
    { "", "Event", "core.v1.Event" },
    { "", "Namespace", "core.v1.Namespace" },
    { "", "Node", "core.v1.Node" },
    { "", "PersistentVolumeClaim", "core.v1.PersistentVolumeClaim" },
    { "", "Pod", "core.v1.Pod" },
    { "", "Secret", "core.v1.Secret" },
    { "", "ServiceAccount", "core.v1.ServiceAccount" },
    { "apiextensions.k8s.io", "CustomResourceDefinition",
      "apiextensions.v1.CustomResourceDefinition" },
    { "apps", "ControllerRevision", "apps.v1.ControllerRevision" },
    { "apps", "DaemonSet", "apps.v1.DaemonSet" },
    { "apps", "Deployment", "apps.v1.Deployment" },
    { "apps", "ReplicaSet", "apps.v1.ReplicaSet" },
    { "apps", "StatefulSet", "apps.v1.StatefulSet" },
    { "authentication.k8s.io", "TokenRequest", "authentication.v1.TokenRequest" },
    { "batch", "CronJob", "batch.v1.CronJob" },
    { "batch", "Job", "batch.v1.Job" },
    { "coordination.k8s.io", "Lease", "coordination.v1.Lease" },
    { "events.k8s.io", "Event", "events.v1.Event" },
    { "policy", "Eviction", "policy.v1.Eviction" },
    { "policy", "PodDisruptionBudget", "policy.v1.PodDisruptionBudget" },
    { "rbac.authorization.k8s.io", "ClusterRole", "rbac.v1.ClusterRole" },
    { "rbac.authorization.k8s.io", "ClusterRoleBinding", "rbac.v1.ClusterRoleBinding" },
    { "rbac.authorization.k8s.io", "Role", "rbac.v1.Role" },
    { "rbac.authorization.k8s.io", "RoleBinding", "rbac.v1.RoleBinding" },
    { "storage.k8s.io", "VolumeAttachment", "storage.v1.VolumeAttachment" },
};
const uint32_t builtin_kind_types_n = ARRAY_LEN(builtin_kind_types);
