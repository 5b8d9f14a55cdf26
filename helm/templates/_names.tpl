{{- define "sallyport.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "sallyport.labels" -}}
{{ include "sallyport.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "sallyport.selector" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The pod of `helm test` is no replica, so that no Service sends callers to it. */ -}}
{{- define "sallyport.testLabels" -}}
app.kubernetes.io/name: sallyport-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sallyport.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /*
The metadata of every object. Called with (dict "root" $ "suffix" "-metrics" "own" .Values.metrics.service), and besides
"labels" and "annotations" that the object has in any case, and "namespace". The chart's own labels take precedence,
because selectors depend on them.
*/ -}}
{{- define "sallyport.metadata" -}}
{{- $values := .root.Values -}}{{- $own := .own | default dict -}}
{{- $labels := mergeOverwrite dict (deepCopy $values.commonLabels) ($own.labels | default dict) (.labels | default dict) (include "sallyport.labels" .root | fromYaml) -}}
{{- $annotations := mergeOverwrite dict (deepCopy $values.commonAnnotations) ($own.annotations | default dict) (.annotations | default dict) -}}
name: {{ printf "%s%s" (include "sallyport.name" .root) .suffix | quote }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Name of a ConfigMap: the existing one, or ours. Called with (list . "config"). */ -}}
{{- define "sallyport.configMap" -}}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}
{{- $existing := index $root.Values.existingConfigMaps $kind -}}
{{- if $existing -}}{{ $existing }}{{- else -}}{{ include "sallyport.name" $root }}-{{ $kind }}{{- end -}}
{{- end -}}

{{- define "sallyport.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "sallyport.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- /* Every container of the chart's own is held to this. */ -}}
{{- define "sallyport.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end -}}

{{- /* Every pod of the chart's own is held to this; which user it is may be left to the cluster. */ -}}
{{- define "sallyport.podSecurity" -}}
runAsNonRoot: true
{{- range $name, $value := .Values.podSecurityContext }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ $value }}
{{- end }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}
