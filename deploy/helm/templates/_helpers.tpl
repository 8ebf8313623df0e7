{{- define "lakemirror.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "lakemirror.labels" -}}
app.kubernetes.io/name: lakemirror
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "lakemirror.selector" -}}
app.kubernetes.io/name: lakemirror
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* One container: a list of the root, the process's role and its resources. */}}
{{- define "lakemirror.container" -}}
{{- $root := index . 0 }}{{- $role := index . 1 }}{{- $resources := index . 2 }}{{- $own := $root.Values.replication -}}
name: {{ $role }}
image: "{{ $own.image.repository }}:{{ $own.image.tag | default $root.Chart.AppVersion }}"
imagePullPolicy: {{ $own.image.pullPolicy }}
args: [{{ $role | quote }}]
env:
  - {name: LAKEMIRROR_CONFIG, value: /etc/lakemirror/lakemirror.yaml}
{{- if hasPrefix "spark" $role }}
  - {name: LAKEMIRROR_SPARK_CORES, value: {{ $own.spark.cores | quote }}}
  - {name: LAKEMIRROR_SPARK_MEMORY, value: {{ $own.spark.memory | quote }}}
{{- with $own.spark.remote }}
  - {name: SPARK_REMOTE, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- with $own.extraEnvVars }}
{{ toYaml . | indent 2 }}
{{- end }}
{{- with $own.extraEnvVarsSecret }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
volumeMounts:
  - {name: config, mountPath: /etc/lakemirror, readOnly: true}
  - {name: var, mountPath: /var/lib/lakemirror}
  - {name: tmp, mountPath: /tmp}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- with $resources }}
resources:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end }}
