{{- define "sallyport.name" -}}
{{- printf "%s" .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "sallyport.labels" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "sallyport.selector" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sallyport.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Name of a ConfigMap: the existing one, or ours. Called with (list . "config"). */ -}}
{{- define "sallyport.configMap" -}}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}
{{- $existing := index $root.Values.existingConfigMaps $kind -}}
{{- if $existing -}}{{ $existing }}{{- else -}}{{ include "sallyport.name" $root }}-{{ $kind }}{{- end -}}
{{- end -}}
