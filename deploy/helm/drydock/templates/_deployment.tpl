{{- /* (dict "root" $ "part" "controller" "args" (list …) "volumes" (list …) "mounts" (list …) "annotations" (dict …) "envFrom" (list …)) */ -}}
{{- define "drydock.deployment" -}}
{{- $root := .root -}}
{{- $settings := include "drydock.settings" . | fromYaml -}}
{{- $args := .args -}}
{{- $volumes := .volumes | default list -}}
{{- $mounts := .mounts | default list -}}
{{- if $settings.tls.secretName -}}
{{- $args = concat $args (list "--tls-cert-file=/tls/tls.crt" "--tls-private-key-file=/tls/tls.key") -}}
{{- $volumes = append $volumes (dict "name" "tls" "secret" (dict "secretName" $settings.tls.secretName)) -}}
{{- $mounts = append $mounts (dict "name" "tls" "mountPath" "/tls" "readOnly" true) -}}
{{- end -}}
{{- if eq $settings.auth "cluster" -}}
{{- $_ := required "auth=cluster: want tls.secretName, so that no token is sent in the clear" $settings.tls.secretName -}}
{{- $args = append $args "--auth=cluster" -}}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "drydock.partName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "drydock.partLabels" . | nindent 4 }}
spec:
  replicas: {{ $settings.replicaCount }}
  selector:
    matchLabels:
      {{- include "drydock.selector" . | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 1, maxSurge: {{ if eq $settings.podAntiAffinity "hard" }}0{{ else }}1{{ end }}}
  template:
    metadata:
      labels:
        {{- include "drydock.partLabels" . | nindent 8 }}
        {{- with $settings.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- $annotations := .annotations | default dict }}
      {{- if and $root.Values.metrics.annotations (not $root.Values.serviceMonitor.enabled) }}
      {{- $annotations = merge $annotations (dict "prometheus.io/scrape" "true" "prometheus.io/port" "8080" "prometheus.io/targets" "kubernetes") }}
      {{- if $settings.tls.secretName }}
      {{- $annotations = merge $annotations (dict "prometheus.io/scheme" "https") }}
      {{- end }}
      {{- end }}
      {{- with mergeOverwrite $annotations $settings.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "drydock.account" . }}
      automountServiceAccountToken: true
      {{- with $settings.imagePullSecrets }}
      imagePullSecrets: {{ toJson . }}
      {{- end }}
      {{- with $settings.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      terminationGracePeriodSeconds: {{ $settings.terminationGracePeriodSeconds }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      {{- with $settings.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- $tolerations := $settings.tolerations | default list }}
      {{- if $settings.tolerateUnschedulable }}
      {{- $tolerations = append $tolerations (dict "key" "node.kubernetes.io/unschedulable" "operator" "Exists" "effect" "NoSchedule") }}
      {{- end }}
      {{- with $tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $settings.affinity }}
      affinity:
        {{- toYaml $settings.affinity | nindent 8 }}
      {{- else if ne $settings.podAntiAffinity "none" }}
      affinity:
        podAntiAffinity:
          {{- if eq $settings.podAntiAffinity "hard" }}
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  {{- include "drydock.selector" . | nindent 18 }}
          {{- else }}
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- include "drydock.selector" . | nindent 20 }}
          {{- end }}
      {{- end }}
      {{- if kindIs "slice" $settings.topologySpreadConstraints }}
      {{- with $settings.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- else }}
      topologySpreadConstraints:
        - topologyKey: topology.kubernetes.io/zone
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "drydock.selector" . | nindent 14 }}
      {{- end }}
      containers:
        - name: {{ .part }}
          image: {{ include "drydock.image" (dict "root" $root "settings" $settings) | quote }}
          imagePullPolicy: {{ $settings.image.pullPolicy }}
          args:
            {{- range $args }}
            - {{ . | quote }}
            {{- end }}
            - --log-format={{ $settings.logFormat }}
            - --zap-log-level={{ $settings.logLevel }}
            {{- with concat ($settings.allowedHosts | default list) (.hosts | default list) | uniq }}
            - --allowed-hosts={{ join "," . }}
            {{- end }}
            {{- range $settings.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          {{- with $settings.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with concat (.envFrom | default list) ($settings.extraEnvFrom | default list) }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: metrics, containerPort: 8080}
            - {name: health, containerPort: 8081}
          livenessProbe:
            httpGet: {path: /healthz, port: health}
            initialDelaySeconds: 3
            periodSeconds: 3
            timeoutSeconds: 3
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            periodSeconds: 3
            timeoutSeconds: 3
          {{- if $settings.limits }}
          resources:
            requests: {{ toJson $settings.limits }}
            limits: {{ toJson $settings.limits }}
          {{- else }}
          resources:
            {{- toYaml $settings.resources | nindent 12 }}
          {{- end }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          {{- with $mounts }}
          volumeMounts:
            {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with $volumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

{{- /* (dict "root" $ "part" "controller"): account, Service, PodDisruptionBudget, ServiceMonitor and NetworkPolicy. */ -}}
{{- define "drydock.around" -}}
{{- $root := .root -}}
{{- $own := index .root.Values .part -}}
{{- $settings := include "drydock.settings" . | fromYaml -}}
{{- if $own.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "drydock.account" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "drydock.partLabels" . | nindent 4 }}
  {{- with $own.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "drydock.partName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "drydock.partLabels" . | nindent 4 }}
  {{- with $own.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $own.service.type }}
  selector:
    {{- include "drydock.selector" . | nindent 4 }}
  ports:
    - {name: metrics, port: {{ $own.service.port }}, targetPort: metrics}
{{- if and $settings.podDisruptionBudget.enabled (gt (int $settings.replicaCount) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "drydock.partName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "drydock.partLabels" . | nindent 4 }}
spec:
  minAvailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "drydock.selector" . | nindent 6 }}
{{- end }}
{{- if $root.Values.serviceMonitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "drydock.partName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "drydock.partLabels" . | nindent 4 }}
    {{- with $root.Values.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "drydock.selector" . | nindent 6 }}
  endpoints:
    - port: metrics
      path: /metrics
      interval: {{ $root.Values.serviceMonitor.interval }}
      {{- if $settings.tls.secretName }}
      scheme: https
      tlsConfig:
        ca: {secret: {name: {{ $settings.tls.secretName }}, key: ca.crt}}
        serverName: {{ include "drydock.partName" . }}.{{ $root.Release.Namespace }}.svc
      {{- end }}
      {{- if eq $settings.auth "cluster" }}
      bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
      {{- end }}
{{- end }}
{{- if $root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "drydock.partName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "drydock.partLabels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "drydock.selector" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports: [{port: 8081, protocol: TCP}]
    - ports: [{port: 8080, protocol: TCP}]
      from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/instance: {{ $root.Release.Name }}
        {{- with $root.Values.networkPolicy.from }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}
{{- end -}}

{{- /* (dict "root" $ "name" … "kind" "ClusterRole" "namespace" … "rules" … "labels" … "account" …): a role and its binding. */ -}}
{{- define "drydock.role" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- .labels | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
{{- if .account }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- .labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
{{- end -}}
