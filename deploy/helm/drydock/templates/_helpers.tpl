{{- define "drydock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "drydock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "drydock.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Of what has no part. */ -}}
{{- define "drydock.labels" -}}
app.kubernetes.io/name: {{ include "drydock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* (dict "root" $ "part" "controller"): the labels that select the pods of a part. */ -}}
{{- define "drydock.selector" -}}
app.kubernetes.io/name: {{ include "drydock.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "drydock.partLabels" -}}
{{ include "drydock.labels" .root }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "drydock.partName" -}}
{{ include "drydock.fullname" .root }}-{{ .part }}
{{- end -}}

{{- define "drydock.account" -}}
{{- $settings := (index .root.Values .part).serviceAccount -}}
{{- if $settings.name -}}
{{ $settings.name }}
{{- else if $settings.create -}}
{{ include "drydock.partName" . }}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "drydock.image" -}}
{{- $image := .settings.image -}}
{{- $registry := $image.registry | default ((.root.Values.global | default dict).registry) -}}
{{- with $registry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- /* The settings of a part as YAML: those that both have, and over them its own. A list or a mapping of its own that is
       not empty replaces the common one. */ -}}
{{- define "drydock.settings" -}}
{{- $own := index .root.Values .part -}}
{{- $settings := dict -}}
{{- range $key := list "replicaCount" "image" "imagePullSecrets" "resources" "limits" "priorityClassName" "nodeSelector" "tolerations" "tolerateUnschedulable" "podAntiAffinity" "affinity" "topologySpreadConstraints" "podDisruptionBudget" "podAnnotations" "podLabels" "extraArgs" "extraEnv" "extraEnvFrom" "terminationGracePeriodSeconds" "logFormat" "logLevel" "allowedHosts" "tls" "auth" -}}
{{- $common := index $.root.Values $key -}}
{{- if not (hasKey $own $key) -}}
{{- $_ := set $settings $key $common -}}
{{- else if eq $key "image" -}}
{{- $_ := set $settings $key (mergeOverwrite (deepCopy $common) (index $own $key)) -}}
{{- else -}}
{{- $_ := set $settings $key (index $own $key) -}}
{{- end -}}
{{- end -}}
{{ toYaml $settings }}
{{- end -}}

{{- /* What the controller uses, by the names of docs/rbac.md, as YAML. */ -}}
{{- define "drydock.controllerUses" -}}
{{- $uses := .Values.controller.uses -}}
drains: {{ $uses.drains }}
forced-drains: {{ and $uses.drains $uses.forcedDrains }}
drain-rules: {{ and $uses.drains $uses.drainRules }}
affinity: {{ $uses.affinity }}
hypervisors: {{ $uses.hypervisors }}
shuffles: {{ $uses.shuffles }}
leases: true
requests: {{ $uses.requests }}
workloads: {{ and $uses.requests $uses.workloads }}
volumes: {{ and $uses.requests $uses.volumes }}
auth: {{ eq (include "drydock.settings" (dict "root" $ "part" "controller") | fromYaml).auth "cluster" }}
install-crds: {{ .Values.crds.byController }}
watch-crds: {{ and $uses.requests $uses.watchCrds }}
{{- end -}}

{{- /* (dict "root" $ "role" "controller" "scope" "cluster" "uses" (dict …)): rules of files/rights.json, one a resource. */ -}}
{{- define "drydock.rules" -}}
{{- $rows := dict -}}
{{- $order := list -}}
{{- range $right := (.root.Files.Get "files/rights.json" | fromJson).rights -}}
{{- if and (eq $right.role $.role) (eq $right.scope $.scope) (or (eq $right.use "") (get $.uses $right.use)) -}}
{{- range $resource := $right.resources -}}
{{- $key := printf "%s %s %s" $right.group $resource ($right.names | default list | join ",") -}}
{{- if not (hasKey $rows $key) -}}
{{- $order = append $order $key -}}
{{- $_ := set $rows $key (dict "group" $right.group "resource" $resource "names" $right.names "verbs" list) -}}
{{- end -}}
{{- $row := index $rows $key -}}
{{- $_ := set $row "verbs" (concat $row.verbs $right.verbs | uniq) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key := $order }}
{{- $row := index $rows $key }}
- apiGroups: [{{ $row.group | quote }}]
  resources: [{{ $row.resource }}]
  {{- with $row.names }}
  resourceNames: {{ toJson . }}
  {{- end }}
  verbs: [{{ $row.verbs | join ", " }}]
{{- end }}
{{- end -}}
