{{- /* How many replicas there are and what each has of its own. */ -}}

{{- /* The kind of the workload: each replica has a claim of its own only in a StatefulSet. */ -}}
{{- define "sallyport.workload" -}}
{{- if and .Values.audit.persistence.enabled (not .Values.audit.persistence.existingClaim) -}}StatefulSet{{- else -}}Deployment{{- end -}}
{{- end -}}

{{- /* "true" where a second replica would have other state, or write into the folder of the first one's audit files. */ -}}
{{- define "sallyport.isSingle" -}}
{{- if or (ne .Values.state.type "redis") (and .Values.audit.persistence.enabled .Values.audit.persistence.existingClaim) -}}true{{- end -}}
{{- end -}}

{{- /* Number of replicas: the least there are where their number follows the load. */ -}}
{{- define "sallyport.replicas" -}}
{{- if .Values.autoscaling.enabled -}}
{{ .Values.autoscaling.minReplicas }}
{{- else if not (kindIs "invalid" .Values.replicas) -}}
{{ .Values.replicas }}
{{- else if include "sallyport.isSingle" . -}}1{{- else -}}2{{- end -}}
{{- end -}}

{{- /* "true" where there is, or may be, more than one replica. */ -}}
{{- define "sallyport.isReplicated" -}}
{{- if or .Values.autoscaling.enabled (gt (include "sallyport.replicas" . | int) 1) -}}true{{- end -}}
{{- end -}}
