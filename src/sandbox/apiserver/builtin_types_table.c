/*
 * The fields of the built-in kinds, made by tools/builtin-types from a real server's
 * documents; change the tool, not this file.
 */
#include "sandbox/apiserver/builtin_types_table.h"

const struct builtin_type builtin_types[] = {
    { "apiextensions.v1.CustomResourceColumnDefinition", false,
      "description#4:s format#3:s jsonPath!#6:s name!#1:s priority#5:w type!#2:s" },
    { "apiextensions.v1.CustomResourceConversion", false,
      "strategy!#1:s webhook#2*:@apiextensions.v1.WebhookConversion" },
    { "apiextensions.v1.CustomResourceDefinition", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec!#2:@apiextensions.v1.CustomResourceDefinitionSpec "
      "status#3:@apiextensions.v1.CustomResourceDefinitionStatus" },
    { "apiextensions.v1.CustomResourceDefinitionCondition", false,
      "lastTransitionTime#3:t message#5:s observedGeneration#6:i reason#4:s status!#2:s "
      "type!#1:s" },
    { "apiextensions.v1.CustomResourceDefinitionNames", false,
      "categories#6:[s]=atomic kind!#4:s listKind#5:s plural!#1:s shortNames#3:[s]=atomic "
      "singular#2:s" },
    { "apiextensions.v1.CustomResourceDefinitionSpec", false,
      "conversion#9*:@apiextensions.v1.CustomResourceConversion group!#1:s "
      "names!#3:@apiextensions.v1.CustomResourceDefinitionNames preserveUnknownFields#10:b "
      "scope!#4:s versions!#7:[@apiextensions.v1.CustomResourceDefinitionVersion]=atomic" },
    { "apiextensions.v1.CustomResourceDefinitionStatus", false,
      "acceptedNames#2:@apiextensions.v1.CustomResourceDefinitionNames "
      "conditions#1:[@apiextensions.v1.CustomResourceDefinitionCondition]=map(type) "
      "observedGeneration#4:i storedVersions#3:[s]=atomic" },
    { "apiextensions.v1.CustomResourceDefinitionVersion", false,
      "additionalPrinterColumns#6:[@apiextensions.v1.CustomResourceColumnDefinition]=atomic "
      "deprecated#7:b deprecationWarning#8*:s name!#1:s "
      "schema#4*:@apiextensions.v1.CustomResourceValidation "
      "selectableFields#9:[@apiextensions.v1.SelectableField]=atomic served!#2:b "
      "storage!#3:b subresources#5*:@apiextensions.v1.CustomResourceSubresources" },
    { "apiextensions.v1.CustomResourceSubresourceScale", false,
      "labelSelectorPath#3*:s specReplicasPath!#1:s statusReplicasPath!#2:s" },
    { "apiextensions.v1.CustomResourceSubresourceStatus", false, "" },
    { "apiextensions.v1.CustomResourceSubresources", false,
      "scale#2*:@apiextensions.v1.CustomResourceSubresourceScale "
      "status#1*:@apiextensions.v1.CustomResourceSubresourceStatus" },
    { "apiextensions.v1.CustomResourceValidation", false,
      "openAPIV3Schema#1*:@apiextensions.v1.JSONSchemaProps" },
    { "apiextensions.v1.ExternalDocumentation", false, "description#1:s url#2:s" },
    { "apiextensions.v1.JSONSchemaProps", false,
      "$ref#3*:s $schema#2:s additionalItems#33*:B additionalProperties#30*:B "
      "allOf#25:[@apiextensions.v1.JSONSchemaProps]=atomic "
      "anyOf#27:[@apiextensions.v1.JSONSchemaProps]=atomic default#8*:a "
      "definitions#34:{@apiextensions.v1.JSONSchemaProps} dependencies#32:{S} "
      "description#4:s enum#20:[a]=atomic example#36*:a exclusiveMaximum#10:b "
      "exclusiveMinimum#12:b externalDocs#35*:@apiextensions.v1.ExternalDocumentation "
      "format#6:s id#1:s items#24*:A maxItems#16*:i maxLength#13*:i maxProperties#21*:i "
      "maximum#9*:n minItems#17*:i minLength#14*:i minProperties#22*:i minimum#11*:n "
      "multipleOf#19*:n not#28*:@apiextensions.v1.JSONSchemaProps nullable#37:b "
      "oneOf#26:[@apiextensions.v1.JSONSchemaProps]=atomic pattern#15:s "
      "patternProperties#31:{@apiextensions.v1.JSONSchemaProps} "
      "properties#29:{@apiextensions.v1.JSONSchemaProps} required#23:[s]=atomic title#7:s "
      "type#5:s uniqueItems#18:b x-kubernetes-embedded-resource#39:b "
      "x-kubernetes-int-or-string#40:b x-kubernetes-list-map-keys#41:[s]=atomic "
      "x-kubernetes-list-type#42*:s x-kubernetes-map-type#43*:s "
      "x-kubernetes-preserve-unknown-fields#38*:b "
      "x-kubernetes-validations#44:[@apiextensions.v1.ValidationRule]=map(rule)+merge/rule" },
    { "apiextensions.v1.SelectableField", false, "jsonPath!#1:s" },
    { "apiextensions.v1.ServiceReference", false, "name!#2:s namespace!#1:s path#3*:s port#4*:w" },
    { "apiextensions.v1.ValidationRule", false,
      "fieldPath#5:s message#2:s messageExpression#3:s optionalOldSelf#6*:b reason#4*:s "
      "rule!#1:s" },
    { "apiextensions.v1.WebhookClientConfig", false,
      "caBundle#2:y service#1*:@apiextensions.v1.ServiceReference url#3*:s" },
    { "apiextensions.v1.WebhookConversion", false,
      "clientConfig#2*:@apiextensions.v1.WebhookClientConfig "
      "conversionReviewVersions!#3:[s]=atomic" },
    { "apps.v1.ControllerRevision", false,
      "apiVersion:s data#2:a kind:s metadata#1:@meta.v1.ObjectMeta revision!#3:i" },
    { "apps.v1.DaemonSet", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@apps.v1.DaemonSetSpec "
      "status#3:@apps.v1.DaemonSetStatus" },
    { "apps.v1.DaemonSetCondition", false,
      "lastTransitionTime#3:t message#5:s reason#4:s status!#2:s type!#1:s" },
    { "apps.v1.DaemonSetSpec", false,
      "minReadySeconds#4:w revisionHistoryLimit#6*:w selector!#1*:@meta.v1.LabelSelector "
      "template!#2:@core.v1.PodTemplateSpec "
      "updateStrategy#3:@apps.v1.DaemonSetUpdateStrategy" },
    { "apps.v1.DaemonSetStatus", false,
      "collisionCount#9*:w conditions#10:[@apps.v1.DaemonSetCondition]=map(type)+merge/type "
      "currentNumberScheduled!#1:w desiredNumberScheduled!#3:w numberAvailable#7:w "
      "numberMisscheduled!#2:w numberReady!#4:w numberUnavailable#8:w "
      "observedGeneration#5:i updatedNumberScheduled#6:w" },
    { "apps.v1.DaemonSetUpdateStrategy", false,
      "rollingUpdate#2*:@apps.v1.RollingUpdateDaemonSet type#1:s" },
    { "apps.v1.Deployment", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@apps.v1.DeploymentSpec "
      "status#3:@apps.v1.DeploymentStatus" },
    { "apps.v1.DeploymentCondition", false,
      "lastTransitionTime#7:t lastUpdateTime#6:t message#5:s reason#4:s status!#2:s "
      "type!#1:s" },
    { "apps.v1.DeploymentSpec", false,
      "minReadySeconds#5:w paused#7:b progressDeadlineSeconds#9*:w replicas#1*:w "
      "revisionHistoryLimit#6*:w selector!#2*:@meta.v1.LabelSelector "
      "strategy#4:@apps.v1.DeploymentStrategy+retainKeys "
      "template!#3:@core.v1.PodTemplateSpec" },
    { "apps.v1.DeploymentStatus", false,
      "availableReplicas#4:w collisionCount#8*:w "
      "conditions#6:[@apps.v1.DeploymentCondition]=map(type)+merge/type "
      "observedGeneration#1:i readyReplicas#7:w replicas#2:w terminatingReplicas#9*:w "
      "unavailableReplicas#5:w updatedReplicas#3:w" },
    { "apps.v1.DeploymentStrategy", false,
      "rollingUpdate#2*:@apps.v1.RollingUpdateDeployment type#1:s" },
    { "apps.v1.ReplicaSet", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@apps.v1.ReplicaSetSpec "
      "status#3:@apps.v1.ReplicaSetStatus" },
    { "apps.v1.ReplicaSetCondition", false,
      "lastTransitionTime#3:t message#5:s reason#4:s status!#2:s type!#1:s" },
    { "apps.v1.ReplicaSetSpec", false,
      "minReadySeconds#4:w replicas#1*:w selector!#2*:@meta.v1.LabelSelector "
      "template#3:@core.v1.PodTemplateSpec" },
    { "apps.v1.ReplicaSetStatus", false,
      "availableReplicas#5:w "
      "conditions#6:[@apps.v1.ReplicaSetCondition]=map(type)+merge/type "
      "fullyLabeledReplicas#2:w observedGeneration#3:i readyReplicas#4:w replicas!#1:w "
      "terminatingReplicas#7*:w" },
    { "apps.v1.RollingUpdateDaemonSet", false, "maxSurge#2*:x maxUnavailable#1*:x" },
    { "apps.v1.RollingUpdateDeployment", false, "maxSurge#2*:x maxUnavailable#1*:x" },
    { "apps.v1.RollingUpdateStatefulSetStrategy", false, "maxUnavailable#2*:x partition#1*:w" },
    { "apps.v1.StatefulSet", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@apps.v1.StatefulSetSpec "
      "status#3:@apps.v1.StatefulSetStatus" },
    { "apps.v1.StatefulSetCondition", false,
      "lastTransitionTime#3:t message#5:s reason#4:s status!#2:s type!#1:s" },
    { "apps.v1.StatefulSetOrdinals", false, "start#1:w" },
    { "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", false,
      "whenDeleted#1:s whenScaled#2:s" },
    { "apps.v1.StatefulSetSpec", false,
      "minReadySeconds#9:w ordinals#11*:@apps.v1.StatefulSetOrdinals "
      "persistentVolumeClaimRetentionPolicy#10*:@apps.v1."
      "StatefulSetPersistentVolumeClaimRetentionPolicy "
      "podManagementPolicy#6:s replicas#1*:w revisionHistoryLimit#8*:w "
      "selector!#2*:@meta.v1.LabelSelector serviceName#5:s "
      "template!#3:@core.v1.PodTemplateSpec "
      "updateStrategy#7:@apps.v1.StatefulSetUpdateStrategy "
      "volumeClaimTemplates#4:[@core.v1.PersistentVolumeClaim]=atomic" },
    { "apps.v1.StatefulSetStatus", false,
      "availableReplicas#11:w collisionCount#9*:w "
      "conditions#10:[@apps.v1.StatefulSetCondition]=map(type)+merge/type "
      "currentReplicas#4:w currentRevision#6:s observedGeneration#1:i readyReplicas#3:w "
      "replicas!#2:w updateRevision#7:s updatedReplicas#5:w" },
    { "apps.v1.StatefulSetUpdateStrategy", false,
      "rollingUpdate#2*:@apps.v1.RollingUpdateStatefulSetStrategy type#1:s" },
    { "authentication.v1.BoundObjectReference", false, "apiVersion#2:s kind#1:s name#3:s uid#4:s" },
    { "authentication.v1.SelfSubjectReview", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "status#2:@authentication.v1.SelfSubjectReviewStatus" },
    { "authentication.v1.SelfSubjectReviewStatus", false,
      "userInfo#1:@authentication.v1.UserInfo" },
    { "authentication.v1.TokenRequest", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec!#2:@authentication.v1.TokenRequestSpec "
      "status#3:@authentication.v1.TokenRequestStatus" },
    { "authentication.v1.TokenRequestSpec", false,
      "audiences!#1:[s]=atomic boundObjectRef#3*:@authentication.v1.BoundObjectReference "
      "expirationSeconds#4*:i" },
    { "authentication.v1.TokenRequestStatus", false, "expirationTimestamp!#2:t token!#1:s" },
    { "authentication.v1.TokenReview", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec!#2:@authentication.v1.TokenReviewSpec "
      "status#3:@authentication.v1.TokenReviewStatus" },
    { "authentication.v1.TokenReviewSpec", false, "audiences#2:[s]=atomic token#1:s" },
    { "authentication.v1.TokenReviewStatus", false,
      "audiences#4:[s]=atomic authenticated#1:b error#3:s user#2:@authentication.v1.UserInfo" },
    { "authentication.v1.UserInfo", false,
      "extra#4:{[s]} groups#3:[s]=atomic uid#2:s username#1:s" },
    { "authorization.v1.FieldSelectorAttributes", false,
      "rawSelector#1:s requirements#2:[@meta.v1.FieldSelectorRequirement]=atomic" },
    { "authorization.v1.LabelSelectorAttributes", false,
      "rawSelector#1:s requirements#2:[@meta.v1.LabelSelectorRequirement]=atomic" },
    { "authorization.v1.NonResourceAttributes", false, "path#1:s verb#2:s" },
    { "authorization.v1.NonResourceRule", false,
      "nonResourceURLs#2:[s]=atomic verbs!#1:[s]=atomic" },
    { "authorization.v1.ResourceAttributes", false,
      "fieldSelector#8*:@authorization.v1.FieldSelectorAttributes group#3:s "
      "labelSelector#9*:@authorization.v1.LabelSelectorAttributes name#7:s namespace#1:s "
      "resource#5:s subresource#6:s verb#2:s version#4:s" },
    { "authorization.v1.ResourceRule", false,
      "apiGroups#2:[s]=atomic resourceNames#4:[s]=atomic resources#3:[s]=atomic "
      "verbs!#1:[s]=atomic" },
    { "authorization.v1.SelfSubjectAccessReview", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec!#2:@authorization.v1.SelfSubjectAccessReviewSpec "
      "status#3:@authorization.v1.SubjectAccessReviewStatus" },
    { "authorization.v1.SelfSubjectAccessReviewSpec", false,
      "nonResourceAttributes#2*:@authorization.v1.NonResourceAttributes "
      "resourceAttributes#1*:@authorization.v1.ResourceAttributes" },
    { "authorization.v1.SelfSubjectRulesReview", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec!#2:@authorization.v1.SelfSubjectRulesReviewSpec "
      "status#3:@authorization.v1.SubjectRulesReviewStatus" },
    { "authorization.v1.SelfSubjectRulesReviewSpec", false, "namespace#1:s" },
    { "authorization.v1.SubjectAccessReview", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec!#2:@authorization.v1.SubjectAccessReviewSpec "
      "status#3:@authorization.v1.SubjectAccessReviewStatus" },
    { "authorization.v1.SubjectAccessReviewSpec", false,
      "extra#5:{[s]} groups#4:[s]=atomic "
      "nonResourceAttributes#2*:@authorization.v1.NonResourceAttributes "
      "resourceAttributes#1*:@authorization.v1.ResourceAttributes uid#6:s user#3:s" },
    { "authorization.v1.SubjectAccessReviewStatus", false,
      "allowed!#1:b denied#4:b evaluationError#3:s reason#2:s" },
    { "authorization.v1.SubjectRulesReviewStatus", false,
      "evaluationError#4:s incomplete!#3:b "
      "nonResourceRules!#2:[@authorization.v1.NonResourceRule]=atomic "
      "resourceRules!#1:[@authorization.v1.ResourceRule]=atomic" },
    { "autoscaling.v1.Scale", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@autoscaling.v1.ScaleSpec "
      "status#3:@autoscaling.v1.ScaleStatus" },
    { "autoscaling.v1.ScaleSpec", false, "replicas#1:w" },
    { "autoscaling.v1.ScaleStatus", false, "replicas!#1:w selector#2:s" },
    { "batch.v1.CronJob", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@batch.v1.CronJobSpec "
      "status#3:@batch.v1.CronJobStatus" },
    { "batch.v1.CronJobSpec", false,
      "concurrencyPolicy#3:s failedJobsHistoryLimit#7*:w "
      "jobTemplate!#5:@batch.v1.JobTemplateSpec schedule!#1:s startingDeadlineSeconds#2*:i "
      "successfulJobsHistoryLimit#6*:w suspend#4*:b timeZone#8*:s" },
    { "batch.v1.CronJobStatus", false,
      "active#1:[@core.v1.ObjectReference]=atomic lastScheduleTime#4*:t "
      "lastSuccessfulTime#5*:t" },
    { "batch.v1.Job", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@batch.v1.JobSpec "
      "status#3:@batch.v1.JobStatus" },
    { "batch.v1.JobCondition", false,
      "lastProbeTime#3:t lastTransitionTime#4:t message#6:s reason#5:s status!#2:s "
      "type!#1:s" },
    { "batch.v1.JobSpec", false,
      "activeDeadlineSeconds#3*:i backoffLimit#7*:w backoffLimitPerIndex#12*:w "
      "completionMode#9*:s completions#2*:w managedBy#15*:s manualSelector#5*:b "
      "maxFailedIndexes#13*:w parallelism#1*:w "
      "podFailurePolicy#11*:@batch.v1.PodFailurePolicy podReplacementPolicy#14*:s "
      "selector#4*:@meta.v1.LabelSelector successPolicy#16*:@batch.v1.SuccessPolicy "
      "suspend#10*:b template!#6:@core.v1.PodTemplateSpec ttlSecondsAfterFinished#8*:w" },
    { "batch.v1.JobStatus", false,
      "active#4:w completedIndexes#7:s completionTime#3*:t "
      "conditions#1:[@batch.v1.JobCondition]=atomic+merge/type failed#6:w "
      "failedIndexes#10*:s ready#9*:w startTime#2*:t succeeded#5:w terminating#11*:w "
      "uncountedTerminatedPods#8*:@batch.v1.UncountedTerminatedPods" },
    { "batch.v1.JobTemplateSpec", false,
      "metadata#1:@meta.v1.ObjectMeta spec#2:@batch.v1.JobSpec" },
    { "batch.v1.PodFailurePolicy", false, "rules!#1:[@batch.v1.PodFailurePolicyRule]=atomic" },
    { "batch.v1.PodFailurePolicyOnExitCodesRequirement", false,
      "containerName#1*:s operator!#2:s values!#3:[w]=set" },
    { "batch.v1.PodFailurePolicyOnPodConditionsPattern", false, "status#2:s type!#1:s" },
    { "batch.v1.PodFailurePolicyRule", false,
      "action!#1:s onExitCodes#2*:@batch.v1.PodFailurePolicyOnExitCodesRequirement "
      "onPodConditions#3:[@batch.v1.PodFailurePolicyOnPodConditionsPattern]=atomic" },
    { "batch.v1.SuccessPolicy", false, "rules!#1:[@batch.v1.SuccessPolicyRule]=atomic" },
    { "batch.v1.SuccessPolicyRule", false, "succeededCount#2*:w succeededIndexes#1*:s" },
    { "batch.v1.UncountedTerminatedPods", false, "failed#2:[s]=set succeeded#1:[s]=set" },
    { "coordination.v1.Lease", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@coordination.v1.LeaseSpec" },
    { "coordination.v1.LeaseSpec", false,
      "acquireTime#3*:u holderIdentity#1*:s leaseDurationSeconds#2*:w leaseTransitions#5*:w "
      "preferredHolder#7*:s renewTime#4*:u strategy#6*:s" },
    { "core.v1.AWSElasticBlockStoreVolumeSource", false,
      "fsType#2:s partition#3:w readOnly#4:b volumeID!#1:s" },
    { "core.v1.Affinity", false,
      "nodeAffinity#1*:@core.v1.NodeAffinity podAffinity#2*:@core.v1.PodAffinity "
      "podAntiAffinity#3*:@core.v1.PodAntiAffinity" },
    { "core.v1.AppArmorProfile", false, "localhostProfile#2*:s type!#1:s" },
    { "core.v1.AttachedVolume", false, "devicePath!#2:s name!#1:s" },
    { "core.v1.AzureDiskVolumeSource", false,
      "cachingMode#3*:s~ReadWrite diskName!#1:s diskURI!#2:s fsType#4*:s~ext4 "
      "kind#6*:s~Shared readOnly#5*:b" },
    { "core.v1.AzureFilePersistentVolumeSource", false,
      "readOnly#3:b secretName!#1:s secretNamespace#4*:s shareName!#2:s" },
    { "core.v1.AzureFileVolumeSource", false, "readOnly#3:b secretName!#1:s shareName!#2:s" },
    { "core.v1.Binding", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "target!#2:@core.v1.ObjectReference" },
    { "core.v1.CSIPersistentVolumeSource", false,
      "controllerExpandSecretRef#9*:@core.v1.SecretReference "
      "controllerPublishSecretRef#6*:@core.v1.SecretReference driver!#1:s fsType#4:s "
      "nodeExpandSecretRef#10*:@core.v1.SecretReference "
      "nodePublishSecretRef#8*:@core.v1.SecretReference "
      "nodeStageSecretRef#7*:@core.v1.SecretReference readOnly#3:b volumeAttributes#5:{s} "
      "volumeHandle!#2:s" },
    { "core.v1.CSIVolumeSource", false,
      "driver!#1:s fsType#3*:s nodePublishSecretRef#5*:@core.v1.LocalObjectReference "
      "readOnly#2*:b volumeAttributes#4:{s}" },
    { "core.v1.Capabilities", false, "add#1:[s]=atomic drop#2:[s]=atomic" },
    { "core.v1.CephFSPersistentVolumeSource", false,
      "monitors!#1:[s]=atomic path#2:s readOnly#6:b secretFile#4:s "
      "secretRef#5*:@core.v1.SecretReference user#3:s" },
    { "core.v1.CephFSVolumeSource", false,
      "monitors!#1:[s]=atomic path#2:s readOnly#6:b secretFile#4:s "
      "secretRef#5*:@core.v1.LocalObjectReference user#3:s" },
    { "core.v1.CinderPersistentVolumeSource", false,
      "fsType#2:s readOnly#3:b secretRef#4*:@core.v1.SecretReference volumeID!#1:s" },
    { "core.v1.CinderVolumeSource", false,
      "fsType#2:s readOnly#3:b secretRef#4*:@core.v1.LocalObjectReference volumeID!#1:s" },
    { "core.v1.ClusterTrustBundleProjection", false,
      "labelSelector#3*:@meta.v1.LabelSelector name#1*:s optional#5*:b path!#4:s "
      "signerName#2*:s" },
    { "core.v1.ConfigMap", false,
      "apiVersion:s binaryData#3:{y} data#2:{s} immutable#4*:b kind:s "
      "metadata#1:@meta.v1.ObjectMeta" },
    { "core.v1.ConfigMapEnvSource", false, "name#1.1:s optional#2*:b" },
    { "core.v1.ConfigMapKeySelector", true, "key!#2:s name#1.1:s optional#3*:b" },
    { "core.v1.ConfigMapNodeConfigSource", false,
      "kubeletConfigKey!#5:s name!#2:s namespace!#1:s resourceVersion#4:s uid#3:s" },
    { "core.v1.ConfigMapProjection", false,
      "items#2:[@core.v1.KeyToPath]=atomic name#1.1:s optional#4*:b" },
    { "core.v1.ConfigMapVolumeSource", false,
      "defaultMode#3*:w items#2:[@core.v1.KeyToPath]=atomic name#1.1:s optional#4*:b" },
    { "core.v1.Container", false,
      "args#4:[s]=atomic command#3:[s]=atomic env#7:[@core.v1.EnvVar]=map(name)+merge/name "
      "envFrom#19:[@core.v1.EnvFromSource]=atomic image#2:s imagePullPolicy#14:s "
      "lifecycle#12*:@core.v1.Lifecycle livenessProbe#10*:@core.v1.Probe name!#1:s "
      "ports#6:[@core.v1.ContainerPort]=map(containerPort,protocol)+merge/containerPort "
      "readinessProbe#11*:@core.v1.Probe "
      "resizePolicy#23:[@core.v1.ContainerResizePolicy]=atomic "
      "resources#8:@core.v1.ResourceRequirements restartPolicy#24*:s "
      "restartPolicyRules#25:[@core.v1.ContainerRestartRule]=atomic "
      "securityContext#15*:@core.v1.SecurityContext startupProbe#22*:@core.v1.Probe "
      "stdin#16:b stdinOnce#17:b terminationMessagePath#13:s terminationMessagePolicy#20:s "
      "tty#18:b volumeDevices#21:[@core.v1.VolumeDevice]=map(devicePath)+merge/devicePath "
      "volumeMounts#9:[@core.v1.VolumeMount]=map(mountPath)+merge/mountPath workingDir#5:s" },
    { "core.v1.ContainerExtendedResourceRequest", false,
      "containerName!#1:s requestName!#3:s resourceName!#2:s" },
    { "core.v1.ContainerImage", false, "names#1:[s]=atomic sizeBytes#2:i" },
    { "core.v1.ContainerPort", false,
      "containerPort!#3:w hostIP#5:s hostPort#2:w name#1:s protocol#4:s~TCP" },
    { "core.v1.ContainerResizePolicy", false, "resourceName!#1:s restartPolicy!#2:s" },
    { "core.v1.ContainerRestartRule", false,
      "action!#1:s exitCodes#2*:@core.v1.ContainerRestartRuleOnExitCodes" },
    { "core.v1.ContainerRestartRuleOnExitCodes", false, "operator!#1:s values#2:[w]=set" },
    { "core.v1.ContainerState", false,
      "running#2*:@core.v1.ContainerStateRunning "
      "terminated#3*:@core.v1.ContainerStateTerminated "
      "waiting#1*:@core.v1.ContainerStateWaiting" },
    { "core.v1.ContainerStateRunning", false, "startedAt#1:t" },
    { "core.v1.ContainerStateTerminated", false,
      "containerID#7:s exitCode!#1:w finishedAt#6:t message#4:s reason#3:s signal#2:w "
      "startedAt#5:t" },
    { "core.v1.ContainerStateWaiting", false, "message#2:s reason#1:s" },
    { "core.v1.ContainerStatus", false,
      "allocatedResources#10:{q} "
      "allocatedResourcesStatus#14:[@core.v1.ResourceStatus]=map(name)+merge/name "
      "containerID#8:s image!#6:s imageID!#7:s lastState#3:@core.v1.ContainerState "
      "name!#1:s ready!#4:b resources#11*:@core.v1.ResourceRequirements restartCount!#5:w "
      "started#9*:b state#2:@core.v1.ContainerState stopSignal#15*:s "
      "user#13*:@core.v1.ContainerUser "
      "volumeMounts#12:[@core.v1.VolumeMountStatus]=map(mountPath)+merge/mountPath" },
    { "core.v1.ContainerUser", false, "linux#1*:@core.v1.LinuxContainerUser" },
    { "core.v1.DaemonEndpoint", false, "Port!#1:w" },
    { "core.v1.DownwardAPIProjection", false, "items#1:[@core.v1.DownwardAPIVolumeFile]=atomic" },
    { "core.v1.DownwardAPIVolumeFile", false,
      "fieldRef#2*:@core.v1.ObjectFieldSelector mode#4*:w path!#1:s "
      "resourceFieldRef#3*:@core.v1.ResourceFieldSelector" },
    { "core.v1.DownwardAPIVolumeSource", false,
      "defaultMode#2*:w items#1:[@core.v1.DownwardAPIVolumeFile]=atomic" },
    { "core.v1.EmptyDirVolumeSource", false, "medium#1:s sizeLimit#2*:q" },
    { "core.v1.EnvFromSource", false,
      "configMapRef#2*:@core.v1.ConfigMapEnvSource prefix#1:s "
      "secretRef#3*:@core.v1.SecretEnvSource" },
    { "core.v1.EnvVar", false, "name!#1:s value#2:s valueFrom#3*:@core.v1.EnvVarSource" },
    { "core.v1.EnvVarSource", false,
      "configMapKeyRef#3*:@core.v1.ConfigMapKeySelector "
      "fieldRef#1*:@core.v1.ObjectFieldSelector fileKeyRef#5*:@core.v1.FileKeySelector "
      "resourceFieldRef#2*:@core.v1.ResourceFieldSelector "
      "secretKeyRef#4*:@core.v1.SecretKeySelector" },
    { "core.v1.EphemeralContainer", false,
      "args#1.4:[s]=atomic command#1.3:[s]=atomic "
      "env#1.7:[@core.v1.EnvVar]=map(name)+merge/name "
      "envFrom#1.19:[@core.v1.EnvFromSource]=atomic image#1.2:s imagePullPolicy#1.14:s "
      "lifecycle#1.12*:@core.v1.Lifecycle livenessProbe#1.10*:@core.v1.Probe name!#1.1:s "
      "ports#1.6:[@core.v1.ContainerPort]=map(containerPort,protocol)+merge/containerPort "
      "readinessProbe#1.11*:@core.v1.Probe "
      "resizePolicy#1.23:[@core.v1.ContainerResizePolicy]=atomic "
      "resources#1.8:@core.v1.ResourceRequirements restartPolicy#1.24*:s "
      "restartPolicyRules#1.25:[@core.v1.ContainerRestartRule]=atomic "
      "securityContext#1.15*:@core.v1.SecurityContext startupProbe#1.22*:@core.v1.Probe "
      "stdin#1.16:b stdinOnce#1.17:b targetContainerName#2:s terminationMessagePath#1.13:s "
      "terminationMessagePolicy#1.20:s tty#1.18:b "
      "volumeDevices#1.21:[@core.v1.VolumeDevice]=map(devicePath)+merge/devicePath "
      "volumeMounts#1.9:[@core.v1.VolumeMount]=map(mountPath)+merge/mountPath "
      "workingDir#1.5:s" },
    { "core.v1.EphemeralVolumeSource", false,
      "volumeClaimTemplate#1*:@core.v1.PersistentVolumeClaimTemplate" },
    { "core.v1.Event", false,
      "action#12:s apiVersion:s count#8:w eventTime#10:u firstTimestamp#6:t "
      "involvedObject!#2:@core.v1.ObjectReference kind:s lastTimestamp#7:t message#4:s "
      "metadata!#1:@meta.v1.ObjectMeta reason#3:s related#13*:@core.v1.ObjectReference "
      "reportingComponent#14:s reportingInstance#15:s series#11*:@core.v1.EventSeries "
      "source#5:@core.v1.EventSource type#9:s" },
    { "core.v1.EventSeries", false, "count#1:w lastObservedTime#2:u" },
    { "core.v1.EventSource", false, "component#1:s host#2:s" },
    { "core.v1.ExecAction", false, "command#1:[s]=atomic" },
    { "core.v1.FCVolumeSource", false,
      "fsType#3:s lun#2*:w readOnly#4:b targetWWNs#1:[s]=atomic wwids#5:[s]=atomic" },
    { "core.v1.FileKeySelector", true, "key!#3:s optional#4*:b path!#2:s volumeName!#1:s" },
    { "core.v1.FlexPersistentVolumeSource", false,
      "driver!#1:s fsType#2:s options#5:{s} readOnly#4:b "
      "secretRef#3*:@core.v1.SecretReference" },
    { "core.v1.FlexVolumeSource", false,
      "driver!#1:s fsType#2:s options#5:{s} readOnly#4:b "
      "secretRef#3*:@core.v1.LocalObjectReference" },
    { "core.v1.FlockerVolumeSource", false, "datasetName#1:s datasetUUID#2:s" },
    { "core.v1.GCEPersistentDiskVolumeSource", false,
      "fsType#2:s partition#3:w pdName!#1:s readOnly#4:b" },
    { "core.v1.GRPCAction", false, "port!#1:w service#2*:s" },
    { "core.v1.GitRepoVolumeSource", false, "directory#3:s repository!#1:s revision#2:s" },
    { "core.v1.GlusterfsPersistentVolumeSource", false,
      "endpoints!#1:s endpointsNamespace#4*:s path!#2:s readOnly#3:b" },
    { "core.v1.GlusterfsVolumeSource", false, "endpoints!#1:s path!#2:s readOnly#3:b" },
    { "core.v1.HTTPGetAction", false,
      "host#3:s httpHeaders#5:[@core.v1.HTTPHeader]=atomic path#1:s port!#2:x scheme#4:s" },
    { "core.v1.HTTPHeader", false, "name!#1:s value!#2:s" },
    { "core.v1.HostAlias", false, "hostnames#2:[s]=atomic ip!#1:s" },
    { "core.v1.HostIP", false, "ip!#1:s" },
    { "core.v1.HostPathVolumeSource", false, "path!#1:s type#2*:s" },
    { "core.v1.ISCSIPersistentVolumeSource", false,
      "chapAuthDiscovery#8:b chapAuthSession#11:b fsType#5:s initiatorName#12*:s iqn!#2:s "
      "iscsiInterface#4:s~default lun!#3:w portals#7:[s]=atomic readOnly#6:b "
      "secretRef#10*:@core.v1.SecretReference targetPortal!#1:s" },
    { "core.v1.ISCSIVolumeSource", false,
      "chapAuthDiscovery#8:b chapAuthSession#11:b fsType#5:s initiatorName#12*:s iqn!#2:s "
      "iscsiInterface#4:s~default lun!#3:w portals#7:[s]=atomic readOnly#6:b "
      "secretRef#10*:@core.v1.LocalObjectReference targetPortal!#1:s" },
    { "core.v1.ImageVolumeSource", false, "pullPolicy#2:s reference#1:s" },
    { "core.v1.KeyToPath", false, "key!#1:s mode#3*:w path!#2:s" },
    { "core.v1.Lifecycle", false,
      "postStart#1*:@core.v1.LifecycleHandler preStop#2*:@core.v1.LifecycleHandler "
      "stopSignal#3*:s" },
    { "core.v1.LifecycleHandler", false,
      "exec#1*:@core.v1.ExecAction httpGet#2*:@core.v1.HTTPGetAction "
      "sleep#4*:@core.v1.SleepAction tcpSocket#3*:@core.v1.TCPSocketAction" },
    { "core.v1.LinuxContainerUser", false, "gid!#2:i supplementalGroups#3:[i]=atomic uid!#1:i" },
    { "core.v1.LocalObjectReference", true, "name#1:s" },
    { "core.v1.LocalVolumeSource", false, "fsType#2*:s path!#1:s" },
    { "core.v1.ModifyVolumeStatus", false, "status!#2:s targetVolumeAttributesClassName#1:s" },
    { "core.v1.NFSVolumeSource", false, "path!#2:s readOnly#3:b server!#1:s" },
    { "core.v1.Namespace", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@core.v1.NamespaceSpec "
      "status#3:@core.v1.NamespaceStatus" },
    { "core.v1.NamespaceCondition", false,
      "lastTransitionTime#4:t message#6:s reason#5:s status!#2:s type!#1:s" },
    { "core.v1.NamespaceSpec", false, "finalizers#1:[s]=atomic" },
    { "core.v1.NamespaceStatus", false,
      "conditions#2:[@core.v1.NamespaceCondition]=map(type)+merge/type phase#1:s" },
    { "core.v1.Node", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@core.v1.NodeSpec "
      "status#3:@core.v1.NodeStatus" },
    { "core.v1.NodeAddress", false, "address!#2:s type!#1:s" },
    { "core.v1.NodeAffinity", false,
      ""
      "preferredDuringSchedulingIgnoredDuringExecution#2:[@core.v1.PreferredSchedulingTerm]=atomic "
      "requiredDuringSchedulingIgnoredDuringExecution#1*:@core.v1.NodeSelector" },
    { "core.v1.NodeCondition", false,
      "lastHeartbeatTime#3:t lastTransitionTime#4:t message#6:s reason#5:s status!#2:s "
      "type!#1:s" },
    { "core.v1.NodeConfigSource", false, "configMap#2*:@core.v1.ConfigMapNodeConfigSource" },
    { "core.v1.NodeConfigStatus", false,
      "active#2*:@core.v1.NodeConfigSource assigned#1*:@core.v1.NodeConfigSource error#4:s "
      "lastKnownGood#3*:@core.v1.NodeConfigSource" },
    { "core.v1.NodeDaemonEndpoints", false, "kubeletEndpoint#1:@core.v1.DaemonEndpoint" },
    { "core.v1.NodeFeatures", false, "supplementalGroupsPolicy#1*:b" },
    { "core.v1.NodeRuntimeHandler", false,
      "features#2*:@core.v1.NodeRuntimeHandlerFeatures name#1:s" },
    { "core.v1.NodeRuntimeHandlerFeatures", false,
      "recursiveReadOnlyMounts#1*:b userNamespaces#2*:b" },
    { "core.v1.NodeSelector", true, "nodeSelectorTerms!#1:[@core.v1.NodeSelectorTerm]=atomic" },
    { "core.v1.NodeSelectorRequirement", false, "key!#1:s operator!#2:s values#3:[s]=atomic" },
    { "core.v1.NodeSelectorTerm", true,
      "matchExpressions#1:[@core.v1.NodeSelectorRequirement]=atomic "
      "matchFields#2:[@core.v1.NodeSelectorRequirement]=atomic" },
    { "core.v1.NodeSpec", false,
      "configSource#6*:@core.v1.NodeConfigSource externalID#2:s podCIDR#1:s "
      "podCIDRs#7:[s]=set+merge providerID#3:s taints#5:[@core.v1.Taint]=atomic "
      "unschedulable#4:b" },
    { "core.v1.NodeStatus", false,
      "addresses#5:[@core.v1.NodeAddress]=map(type)+merge/type allocatable#2:{q} "
      "capacity#1:{q} conditions#4:[@core.v1.NodeCondition]=map(type)+merge/type "
      "config#11*:@core.v1.NodeConfigStatus daemonEndpoints#6:@core.v1.NodeDaemonEndpoints "
      "declaredFeatures#14:[s]=atomic features#13*:@core.v1.NodeFeatures "
      "images#8:[@core.v1.ContainerImage]=atomic nodeInfo#7:@core.v1.NodeSystemInfo "
      "phase#3:s runtimeHandlers#12:[@core.v1.NodeRuntimeHandler]=atomic "
      "volumesAttached#10:[@core.v1.AttachedVolume]=atomic volumesInUse#9:[s]=atomic" },
    { "core.v1.NodeSwapStatus", false, "capacity#1*:i" },
    { "core.v1.NodeSystemInfo", false,
      "architecture!#10:s bootID!#3:s containerRuntimeVersion!#6:s kernelVersion!#4:s "
      "kubeProxyVersion!#8:s kubeletVersion!#7:s machineID!#1:s operatingSystem!#9:s "
      "osImage!#5:s swap#11*:@core.v1.NodeSwapStatus systemUUID!#2:s" },
    { "core.v1.ObjectFieldSelector", true, "apiVersion#1:s fieldPath!#2:s" },
    { "core.v1.ObjectReference", true,
      "apiVersion#5:s fieldPath#7:s kind#1:s name#3:s namespace#2:s resourceVersion#6:s "
      "uid#4:s" },
    { "core.v1.PersistentVolumeClaim", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec#2:@core.v1.PersistentVolumeClaimSpec "
      "status#3:@core.v1.PersistentVolumeClaimStatus" },
    { "core.v1.PersistentVolumeClaimCondition", false,
      "lastProbeTime#3:t lastTransitionTime#4:t message#6:s reason#5:s status!#2:s "
      "type!#1:s" },
    { "core.v1.PersistentVolumeClaimSpec", false,
      "accessModes#1:[s]=atomic dataSource#7*:@core.v1.TypedLocalObjectReference "
      "dataSourceRef#8*:@core.v1.TypedObjectReference "
      "resources#2:@core.v1.VolumeResourceRequirements selector#4*:@meta.v1.LabelSelector "
      "storageClassName#5*:s volumeAttributesClassName#9*:s volumeMode#6*:s volumeName#3:s" },
    { "core.v1.PersistentVolumeClaimStatus", false,
      "accessModes#2:[s]=atomic allocatedResourceStatuses#7:{s} allocatedResources#5:{q} "
      "capacity#3:{q} "
      "conditions#4:[@core.v1.PersistentVolumeClaimCondition]=map(type)+merge/type "
      "currentVolumeAttributesClassName#8*:s "
      "modifyVolumeStatus#9*:@core.v1.ModifyVolumeStatus phase#1:s" },
    { "core.v1.PersistentVolumeClaimTemplate", false,
      "metadata#1:@meta.v1.ObjectMeta spec!#2:@core.v1.PersistentVolumeClaimSpec" },
    { "core.v1.PersistentVolumeClaimVolumeSource", false, "claimName!#1:s readOnly#2:b" },
    { "core.v1.PersistentVolumeSpec", false,
      "accessModes#3:[s]=atomic "
      "awsElasticBlockStore#2.2*:@core.v1.AWSElasticBlockStoreVolumeSource "
      "azureDisk#2.16*:@core.v1.AzureDiskVolumeSource "
      "azureFile#2.13*:@core.v1.AzureFilePersistentVolumeSource capacity#1:{q} "
      "cephfs#2.9*:@core.v1.CephFSPersistentVolumeSource "
      "cinder#2.8*:@core.v1.CinderPersistentVolumeSource "
      "claimRef#4*:@core.v1.ObjectReference csi#2.22*:@core.v1.CSIPersistentVolumeSource "
      "fc#2.10*:@core.v1.FCVolumeSource "
      "flexVolume#2.12*:@core.v1.FlexPersistentVolumeSource "
      "flocker#2.11*:@core.v1.FlockerVolumeSource "
      "gcePersistentDisk#2.1*:@core.v1.GCEPersistentDiskVolumeSource "
      "glusterfs#2.4*:@core.v1.GlusterfsPersistentVolumeSource "
      "hostPath#2.3*:@core.v1.HostPathVolumeSource "
      "iscsi#2.7*:@core.v1.ISCSIPersistentVolumeSource "
      "local#2.20*:@core.v1.LocalVolumeSource mountOptions#7:[s]=atomic "
      "nfs#2.5*:@core.v1.NFSVolumeSource nodeAffinity#9*:@core.v1.VolumeNodeAffinity "
      "persistentVolumeReclaimPolicy#5:s "
      "photonPersistentDisk#2.17*:@core.v1.PhotonPersistentDiskVolumeSource "
      "portworxVolume#2.18*:@core.v1.PortworxVolumeSource "
      "quobyte#2.15*:@core.v1.QuobyteVolumeSource "
      "rbd#2.6*:@core.v1.RBDPersistentVolumeSource "
      "scaleIO#2.19*:@core.v1.ScaleIOPersistentVolumeSource storageClassName#6:s "
      "storageos#2.21*:@core.v1.StorageOSPersistentVolumeSource "
      "volumeAttributesClassName#10*:s volumeMode#8*:s "
      "vsphereVolume#2.14*:@core.v1.VsphereVirtualDiskVolumeSource" },
    { "core.v1.PhotonPersistentDiskVolumeSource", false, "fsType#2:s pdID!#1:s" },
    { "core.v1.Pod", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta spec#2:@core.v1.PodSpec "
      "status#3:@core.v1.PodStatus" },
    { "core.v1.PodAffinity", false,
      ""
      "preferredDuringSchedulingIgnoredDuringExecution#2:[@core.v1.WeightedPodAffinityTerm]=atomic "
      "requiredDuringSchedulingIgnoredDuringExecution#1:[@core.v1.PodAffinityTerm]=atomic" },
    { "core.v1.PodAffinityTerm", false,
      "labelSelector#1*:@meta.v1.LabelSelector matchLabelKeys#5:[s]=atomic "
      "mismatchLabelKeys#6:[s]=atomic namespaceSelector#4*:@meta.v1.LabelSelector "
      "namespaces#2:[s]=atomic topologyKey!#3:s" },
    { "core.v1.PodAntiAffinity", false,
      ""
      "preferredDuringSchedulingIgnoredDuringExecution#2:[@core.v1.WeightedPodAffinityTerm]=atomic "
      "requiredDuringSchedulingIgnoredDuringExecution#1:[@core.v1.PodAffinityTerm]=atomic" },
    { "core.v1.PodCertificateProjection", false,
      "certificateChainPath#6:s credentialBundlePath#4:s keyPath#5:s keyType!#2:s "
      "maxExpirationSeconds#3*:w signerName!#1:s userAnnotations#7:{s}" },
    { "core.v1.PodCondition", false,
      "lastProbeTime#3:t lastTransitionTime#4:t message#6:s observedGeneration#7:i "
      "reason#5:s status!#2:s type!#1:s" },
    { "core.v1.PodDNSConfig", false,
      "nameservers#1:[s]=atomic options#3:[@core.v1.PodDNSConfigOption]=atomic "
      "searches#2:[s]=atomic" },
    { "core.v1.PodDNSConfigOption", false, "name#1:s value#2*:s" },
    { "core.v1.PodExtendedResourceClaimStatus", false,
      "requestMappings!#1:[@core.v1.ContainerExtendedResourceRequest]=atomic "
      "resourceClaimName!#2:s" },
    { "core.v1.PodIP", false, "ip!#1:s" },
    { "core.v1.PodOS", false, "name!#1:s" },
    { "core.v1.PodReadinessGate", false, "conditionType!#1:s" },
    { "core.v1.PodResourceClaim", false,
      "name!#1:s resourceClaimName#3*:s resourceClaimTemplateName#4*:s" },
    { "core.v1.PodResourceClaimStatus", false, "name!#1:s resourceClaimName#2*:s" },
    { "core.v1.PodSchedulingGate", false, "name!#1:s" },
    { "core.v1.PodSecurityContext", false,
      "appArmorProfile#11*:@core.v1.AppArmorProfile fsGroup#5*:i fsGroupChangePolicy#9*:s "
      "runAsGroup#6*:i runAsNonRoot#3*:b runAsUser#2*:i seLinuxChangePolicy#13*:s "
      "seLinuxOptions#1*:@core.v1.SELinuxOptions seccompProfile#10*:@core.v1.SeccompProfile "
      "supplementalGroups#4:[i]=atomic supplementalGroupsPolicy#12*:s "
      "sysctls#7:[@core.v1.Sysctl]=atomic "
      "windowsOptions#8*:@core.v1.WindowsSecurityContextOptions" },
    { "core.v1.PodSpec", false,
      "activeDeadlineSeconds#5*:i affinity#18*:@core.v1.Affinity "
      "automountServiceAccountToken#21*:b "
      "containers!#2:[@core.v1.Container]=map(name)+merge/name "
      "dnsConfig#26*:@core.v1.PodDNSConfig dnsPolicy#6:s enableServiceLinks#30*:b "
      "ephemeralContainers#34:[@core.v1.EphemeralContainer]=map(name)+merge/name "
      "hostAliases#23:[@core.v1.HostAlias]=map(ip)+merge/ip hostIPC#13:b hostNetwork#11:b "
      "hostPID#12:b hostUsers#37*:b hostname#16:s hostnameOverride#41*:s "
      "imagePullSecrets#15:[@core.v1.LocalObjectReference]=map(name)+merge/name "
      "initContainers#20:[@core.v1.Container]=map(name)+merge/name nodeName#10:s "
      "nodeSelector#7:{s}=atomic os#36*:@core.v1.PodOS overhead#32:{q} "
      "preemptionPolicy#31*:s priority#25*:w priorityClassName#24:s "
      "readinessGates#28:[@core.v1.PodReadinessGate]=atomic "
      "resourceClaims#39:[@core.v1.PodResourceClaim]=map(name)+merge,retainKeys/name "
      "resources#40*:@core.v1.ResourceRequirements restartPolicy#3:s runtimeClassName#29*:s "
      "schedulerName#19:s "
      "schedulingGates#38:[@core.v1.PodSchedulingGate]=map(name)+merge/name "
      "securityContext#14*:@core.v1.PodSecurityContext serviceAccount#9:s "
      "serviceAccountName#8:s setHostnameAsFQDN#35*:b shareProcessNamespace#27*:b "
      "subdomain#17:s terminationGracePeriodSeconds#4*:i "
      "tolerations#22:[@core.v1.Toleration]=atomic "
      "topologySpreadConstraints#33:[@core.v1.TopologySpreadConstraint]=map(topologyKey,"
      "whenUnsatisfiable)+merge/topologyKey "
      "volumes#1:[@core.v1.Volume]=map(name)+merge,retainKeys/name "
      "workloadRef#42*:@core.v1.WorkloadReference" },
    { "core.v1.PodStatus", false,
      "allocatedResources#19:{q} conditions#2:[@core.v1.PodCondition]=map(type)+merge/type "
      "containerStatuses#8:[@core.v1.ContainerStatus]=atomic "
      "ephemeralContainerStatuses#13:[@core.v1.ContainerStatus]=atomic "
      "extendedResourceClaimStatus#18*:@core.v1.PodExtendedResourceClaimStatus hostIP#5:s "
      "hostIPs#16:[@core.v1.HostIP]=atomic+merge/ip "
      "initContainerStatuses#10:[@core.v1.ContainerStatus]=atomic message#3:s "
      "nominatedNodeName#11:s observedGeneration#17:i phase#1:s podIP#6:s "
      "podIPs#12:[@core.v1.PodIP]=map(ip)+merge/ip qosClass#9:s reason#4:s resize#14:s "
      "resourceClaimStatuses#15:[@core.v1.PodResourceClaimStatus]=map(name)+merge,retainKeys/name "
      "resources#20*:@core.v1.ResourceRequirements startTime#7*:t" },
    { "core.v1.PodTemplateSpec", false, "metadata#1:@meta.v1.ObjectMeta spec#2:@core.v1.PodSpec" },
    { "core.v1.PortworxVolumeSource", false, "fsType#2:s readOnly#3:b volumeID!#1:s" },
    { "core.v1.PreferredSchedulingTerm", false,
      "preference!#2:@core.v1.NodeSelectorTerm weight!#1:w" },
    { "core.v1.Probe", false,
      "exec#1.1*:@core.v1.ExecAction failureThreshold#6:w grpc#1.4*:@core.v1.GRPCAction "
      "httpGet#1.2*:@core.v1.HTTPGetAction initialDelaySeconds#2:w periodSeconds#4:w "
      "successThreshold#5:w tcpSocket#1.3*:@core.v1.TCPSocketAction "
      "terminationGracePeriodSeconds#7*:i timeoutSeconds#3:w" },
    { "core.v1.ProjectedVolumeSource", false,
      "defaultMode#2*:w sources#1:[@core.v1.VolumeProjection]=atomic" },
    { "core.v1.QuobyteVolumeSource", false,
      "group#5:s readOnly#3:b registry!#1:s tenant#6:s user#4:s volume!#2:s" },
    { "core.v1.RBDPersistentVolumeSource", false,
      "fsType#3:s image!#2:s keyring#6:s~/etc/ceph/keyring monitors!#1:[s]=atomic "
      "pool#4:s~rbd readOnly#8:b secretRef#7*:@core.v1.SecretReference user#5:s~admin" },
    { "core.v1.RBDVolumeSource", false,
      "fsType#3:s image!#2:s keyring#6:s~/etc/ceph/keyring monitors!#1:[s]=atomic "
      "pool#4:s~rbd readOnly#8:b secretRef#7*:@core.v1.LocalObjectReference user#5:s~admin" },
    { "core.v1.ResourceClaim", false, "name!#1:s request#2:s" },
    { "core.v1.ResourceFieldSelector", true, "containerName#1:s divisor#3:q resource!#2:s" },
    { "core.v1.ResourceHealth", false, "health#2:s resourceID!#1:s" },
    { "core.v1.ResourceRequirements", false,
      "claims#3:[@core.v1.ResourceClaim]=map(name) limits#1:{q} requests#2:{q}" },
    { "core.v1.ResourceStatus", false,
      "name!#1:s resources#2:[@core.v1.ResourceHealth]=map(resourceID)" },
    { "core.v1.SELinuxOptions", false, "level#4:s role#2:s type#3:s user#1:s" },
    { "core.v1.ScaleIOPersistentVolumeSource", false,
      "fsType#9:s~xfs gateway!#1:s protectionDomain#5:s readOnly#10:b "
      "secretRef!#3*:@core.v1.SecretReference sslEnabled#4:b "
      "storageMode#7:s~ThinProvisioned storagePool#6:s system!#2:s volumeName#8:s" },
    { "core.v1.ScaleIOVolumeSource", false,
      "fsType#9:s~xfs gateway!#1:s protectionDomain#5:s readOnly#10:b "
      "secretRef!#3*:@core.v1.LocalObjectReference sslEnabled#4:b "
      "storageMode#7:s~ThinProvisioned storagePool#6:s system!#2:s volumeName#8:s" },
    { "core.v1.SeccompProfile", false, "localhostProfile#2*:s type!#1:s" },
    { "core.v1.Secret", false,
      "apiVersion:s data#2:{y} immutable#5*:b kind:s metadata#1:@meta.v1.ObjectMeta "
      "stringData#4:{s} type#3:s" },
    { "core.v1.SecretEnvSource", false, "name#1.1:s optional#2*:b" },
    { "core.v1.SecretKeySelector", true, "key!#2:s name#1.1:s optional#3*:b" },
    { "core.v1.SecretProjection", false,
      "items#2:[@core.v1.KeyToPath]=atomic name#1.1:s optional#4*:b" },
    { "core.v1.SecretReference", true, "name#1:s namespace#2:s" },
    { "core.v1.SecretVolumeSource", false,
      "defaultMode#3*:w items#2:[@core.v1.KeyToPath]=atomic optional#4*:b secretName#1:s" },
    { "core.v1.SecurityContext", false,
      "allowPrivilegeEscalation#7*:b appArmorProfile#12*:@core.v1.AppArmorProfile "
      "capabilities#1*:@core.v1.Capabilities privileged#2*:b procMount#9*:s "
      "readOnlyRootFilesystem#6*:b runAsGroup#8*:i runAsNonRoot#5*:b runAsUser#4*:i "
      "seLinuxOptions#3*:@core.v1.SELinuxOptions seccompProfile#11*:@core.v1.SeccompProfile "
      "windowsOptions#10*:@core.v1.WindowsSecurityContextOptions" },
    { "core.v1.ServiceAccount", false,
      "apiVersion:s automountServiceAccountToken#4*:b "
      "imagePullSecrets#3:[@core.v1.LocalObjectReference]=atomic kind:s "
      "metadata#1:@meta.v1.ObjectMeta "
      "secrets#2:[@core.v1.ObjectReference]=map(name)+merge/name" },
    { "core.v1.ServiceAccountTokenProjection", false,
      "audience#1:s expirationSeconds#2*:i path!#3:s" },
    { "core.v1.SleepAction", false, "seconds!#1:i" },
    { "core.v1.StorageOSPersistentVolumeSource", false,
      "fsType#3:s readOnly#4:b secretRef#5*:@core.v1.ObjectReference volumeName#1:s "
      "volumeNamespace#2:s" },
    { "core.v1.StorageOSVolumeSource", false,
      "fsType#3:s readOnly#4:b secretRef#5*:@core.v1.LocalObjectReference volumeName#1:s "
      "volumeNamespace#2:s" },
    { "core.v1.Sysctl", false, "name!#1:s value!#2:s" },
    { "core.v1.TCPSocketAction", false, "host#2:s port!#1:x" },
    { "core.v1.Taint", false, "effect!#3:s key!#1:s timeAdded#4*:t value#2:s" },
    { "core.v1.Toleration", false,
      "effect#4:s key#1:s operator#2:s tolerationSeconds#5*:i value#3:s" },
    { "core.v1.TopologySpreadConstraint", false,
      "labelSelector#4*:@meta.v1.LabelSelector matchLabelKeys#8:[s]=atomic maxSkew!#1:w "
      "minDomains#5*:w nodeAffinityPolicy#6*:s nodeTaintsPolicy#7*:s topologyKey!#2:s "
      "whenUnsatisfiable!#3:s" },
    { "core.v1.TypedLocalObjectReference", true, "apiGroup#1*:s kind!#2:s name!#3:s" },
    { "core.v1.TypedObjectReference", false, "apiGroup#1*:s kind!#2:s name!#3:s namespace#4*:s" },
    { "core.v1.Volume", false,
      "awsElasticBlockStore#2.4*:@core.v1.AWSElasticBlockStoreVolumeSource "
      "azureDisk#2.22*:@core.v1.AzureDiskVolumeSource "
      "azureFile#2.18*:@core.v1.AzureFileVolumeSource "
      "cephfs#2.14*:@core.v1.CephFSVolumeSource cinder#2.13*:@core.v1.CinderVolumeSource "
      "configMap#2.19*:@core.v1.ConfigMapVolumeSource csi#2.28*:@core.v1.CSIVolumeSource "
      "downwardAPI#2.16*:@core.v1.DownwardAPIVolumeSource "
      "emptyDir#2.2*:@core.v1.EmptyDirVolumeSource "
      "ephemeral#2.29*:@core.v1.EphemeralVolumeSource fc#2.17*:@core.v1.FCVolumeSource "
      "flexVolume#2.12*:@core.v1.FlexVolumeSource "
      "flocker#2.15*:@core.v1.FlockerVolumeSource "
      "gcePersistentDisk#2.3*:@core.v1.GCEPersistentDiskVolumeSource "
      "gitRepo#2.5*:@core.v1.GitRepoVolumeSource "
      "glusterfs#2.9*:@core.v1.GlusterfsVolumeSource "
      "hostPath#2.1*:@core.v1.HostPathVolumeSource image#2.30*:@core.v1.ImageVolumeSource "
      "iscsi#2.8*:@core.v1.ISCSIVolumeSource name!#1:s nfs#2.7*:@core.v1.NFSVolumeSource "
      "persistentVolumeClaim#2.10*:@core.v1.PersistentVolumeClaimVolumeSource "
      "photonPersistentDisk#2.23*:@core.v1.PhotonPersistentDiskVolumeSource "
      "portworxVolume#2.24*:@core.v1.PortworxVolumeSource "
      "projected#2.26*:@core.v1.ProjectedVolumeSource "
      "quobyte#2.21*:@core.v1.QuobyteVolumeSource rbd#2.11*:@core.v1.RBDVolumeSource "
      "scaleIO#2.25*:@core.v1.ScaleIOVolumeSource secret#2.6*:@core.v1.SecretVolumeSource "
      "storageos#2.27*:@core.v1.StorageOSVolumeSource "
      "vsphereVolume#2.20*:@core.v1.VsphereVirtualDiskVolumeSource" },
    { "core.v1.VolumeDevice", false, "devicePath!#2:s name!#1:s" },
    { "core.v1.VolumeMount", false,
      "mountPath!#3:s mountPropagation#5*:s name!#1:s readOnly#2:b recursiveReadOnly#7*:s "
      "subPath#4:s subPathExpr#6:s" },
    { "core.v1.VolumeMountStatus", false,
      "mountPath!#2:s name!#1:s readOnly#3:b recursiveReadOnly#4*:s" },
    { "core.v1.VolumeNodeAffinity", false, "required#1*:@core.v1.NodeSelector" },
    { "core.v1.VolumeProjection", false,
      "clusterTrustBundle#5*:@core.v1.ClusterTrustBundleProjection "
      "configMap#3*:@core.v1.ConfigMapProjection "
      "downwardAPI#2*:@core.v1.DownwardAPIProjection "
      "podCertificate#6*:@core.v1.PodCertificateProjection "
      "secret#1*:@core.v1.SecretProjection "
      "serviceAccountToken#4*:@core.v1.ServiceAccountTokenProjection" },
    { "core.v1.VolumeResourceRequirements", false, "limits#1:{q} requests#2:{q}" },
    { "core.v1.VsphereVirtualDiskVolumeSource", false,
      "fsType#2:s storagePolicyID#4:s storagePolicyName#3:s volumePath!#1:s" },
    { "core.v1.WeightedPodAffinityTerm", false,
      "podAffinityTerm!#2:@core.v1.PodAffinityTerm weight!#1:w" },
    { "core.v1.WindowsSecurityContextOptions", false,
      "gmsaCredentialSpec#2*:s gmsaCredentialSpecName#1*:s hostProcess#4*:b "
      "runAsUserName#3*:s" },
    { "core.v1.WorkloadReference", false, "name!#1:s podGroup!#2:s podGroupReplicaKey#3:s" },
    { "events.v1.Event", false,
      "action#6:s apiVersion:s deprecatedCount#15:w deprecatedFirstTimestamp#13:t "
      "deprecatedLastTimestamp#14:t deprecatedSource#12:@core.v1.EventSource eventTime!#2:u "
      "kind:s metadata#1:@meta.v1.ObjectMeta note#10:s reason#7:s "
      "regarding#8:@core.v1.ObjectReference related#9*:@core.v1.ObjectReference "
      "reportingController#4:s reportingInstance#5:s series#3*:@events.v1.EventSeries "
      "type#11:s" },
    { "events.v1.EventSeries", false, "count!#1:w lastObservedTime!#2:u" },
    { "meta.v1.Condition", false,
      "lastTransitionTime!#4:t message!#6:s observedGeneration#3:i reason!#5:s status!#2:s "
      "type!#1:s" },
    { "meta.v1.DeleteOptions", false,
      "apiVersion:s dryRun#5:[s]=atomic gracePeriodSeconds#1*:i "
      "ignoreStoreReadErrorWithClusterBreakingPotential#6*:b kind:s orphanDependents#3*:b "
      "preconditions#2*:@meta.v1.Preconditions propagationPolicy#4*:s" },
    { "meta.v1.FieldSelectorRequirement", false, "key!#1:s operator!#2:s values#3:[s]=atomic" },
    { "meta.v1.LabelSelector", true,
      "matchExpressions#2:[@meta.v1.LabelSelectorRequirement]=atomic matchLabels#1:{s}" },
    { "meta.v1.LabelSelectorRequirement", false, "key!#1:s operator!#2:s values#3:[s]=atomic" },
    { "meta.v1.ManagedFieldsEntry", false,
      "apiVersion#3:s fieldsType#6:s fieldsV1#7*:a manager#1:s operation#2:s "
      "subresource#8:s time#4*:t" },
    { "meta.v1.ObjectMeta", false,
      "annotations#12:{s} creationTimestamp#8:t deletionGracePeriodSeconds#10*:i "
      "deletionTimestamp#9*:t finalizers#14:[s]=set+merge generateName#2:s generation#7:i "
      "labels#11:{s} managedFields#17:[@meta.v1.ManagedFieldsEntry]=atomic name#1:s "
      "namespace#3:s ownerReferences#13:[@meta.v1.OwnerReference]=map(uid)+merge/uid "
      "resourceVersion#6:s selfLink#4:s uid#5:s" },
    { "meta.v1.OwnerReference", true,
      "apiVersion!#5:s blockOwnerDeletion#7*:b controller#6*:b kind!#1:s name!#3:s uid!#4:s" },
    { "meta.v1.Preconditions", false, "resourceVersion#2*:s uid#1*:s" },
    { "policy.v1.Eviction", false,
      "apiVersion:s deleteOptions#2*:@meta.v1.DeleteOptions kind:s "
      "metadata#1:@meta.v1.ObjectMeta" },
    { "policy.v1.PodDisruptionBudget", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec#2:@policy.v1.PodDisruptionBudgetSpec "
      "status#3:@policy.v1.PodDisruptionBudgetStatus" },
    { "policy.v1.PodDisruptionBudgetSpec", false,
      "maxUnavailable#3*:x minAvailable#1*:x selector#2*:@meta.v1.LabelSelector+replace "
      "unhealthyPodEvictionPolicy#4*:s" },
    { "policy.v1.PodDisruptionBudgetStatus", false,
      "conditions#7:[@meta.v1.Condition]=map(type)+merge/type currentHealthy!#4:w "
      "desiredHealthy!#5:w disruptedPods#2:{t} disruptionsAllowed!#3:w expectedPods!#6:w "
      "observedGeneration#1:i" },
    { "rbac.v1.AggregationRule", false, "clusterRoleSelectors#1:[@meta.v1.LabelSelector]=atomic" },
    { "rbac.v1.ClusterRole", false,
      "aggregationRule#3*:@rbac.v1.AggregationRule apiVersion:s kind:s "
      "metadata#1:@meta.v1.ObjectMeta rules#2:[@rbac.v1.PolicyRule]=atomic" },
    { "rbac.v1.ClusterRoleBinding", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta roleRef!#3:@rbac.v1.RoleRef "
      "subjects#2:[@rbac.v1.Subject]=atomic" },
    { "rbac.v1.PolicyRule", false,
      "apiGroups#2:[s]=atomic nonResourceURLs#5:[s]=atomic resourceNames#4:[s]=atomic "
      "resources#3:[s]=atomic verbs!#1:[s]=atomic" },
    { "rbac.v1.Role", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "rules#2:[@rbac.v1.PolicyRule]=atomic" },
    { "rbac.v1.RoleBinding", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta roleRef!#3:@rbac.v1.RoleRef "
      "subjects#2:[@rbac.v1.Subject]=atomic" },
    { "rbac.v1.RoleRef", true, "apiGroup!#1:s kind!#2:s name!#3:s" },
    { "rbac.v1.Subject", true, "apiGroup#2:s kind!#1:s name!#3:s namespace#4:s" },
    { "scheduling.v1.PriorityClass", false,
      "apiVersion:s description#4:s globalDefault#3:b kind:s metadata#1:@meta.v1.ObjectMeta "
      "preemptionPolicy#5*:s value!#2:w" },
    { "storage.v1.VolumeAttachment", false,
      "apiVersion:s kind:s metadata#1:@meta.v1.ObjectMeta "
      "spec!#2:@storage.v1.VolumeAttachmentSpec status#3:@storage.v1.VolumeAttachmentStatus" },
    { "storage.v1.VolumeAttachmentSource", false,
      "inlineVolumeSpec#2*:@core.v1.PersistentVolumeSpec persistentVolumeName#1*:s" },
    { "storage.v1.VolumeAttachmentSpec", false,
      "attacher!#1:s nodeName!#3:s source!#2:@storage.v1.VolumeAttachmentSource" },
    { "storage.v1.VolumeAttachmentStatus", false,
      "attachError#3*:@storage.v1.VolumeError attached!#1:b attachmentMetadata#2:{s} "
      "detachError#4*:@storage.v1.VolumeError" },
    { "storage.v1.VolumeError", false, "errorCode#3*:w message#2:s time#1:t" },
};
const uint32_t builtin_types_n = ARRAY_LEN(builtin_types);

const struct builtin_kind_type builtin_kind_types[] = {
    { "", "Binding", "core.v1.Binding" },
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
    { "authentication.k8s.io", "SelfSubjectReview", "authentication.v1.SelfSubjectReview" },
    { "authentication.k8s.io", "TokenRequest", "authentication.v1.TokenRequest" },
    { "authentication.k8s.io", "TokenReview", "authentication.v1.TokenReview" },
    { "authorization.k8s.io", "SelfSubjectAccessReview",
      "authorization.v1.SelfSubjectAccessReview" },
    { "authorization.k8s.io", "SelfSubjectRulesReview", "authorization.v1.SelfSubjectRulesReview" },
    { "authorization.k8s.io", "SubjectAccessReview", "authorization.v1.SubjectAccessReview" },
    { "autoscaling", "Scale", "autoscaling.v1.Scale" },
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
    { "scheduling.k8s.io", "PriorityClass", "scheduling.v1.PriorityClass" },
    { "storage.k8s.io", "VolumeAttachment", "storage.v1.VolumeAttachment" },
};
const uint32_t builtin_kind_types_n = ARRAY_LEN(builtin_kind_types);
