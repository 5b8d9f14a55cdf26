{{- /* How long the audit files of a replica fit, for NOTES.txt. */ -}}

{{- /* What a day of audit files takes, in bytes: 10 calls per second of 1,800 bytes each. */ -}}
{{- define "sallyport.auditBytesADay" -}}1555200000{{- end -}}

{{- /* A quantity such as 50Gi or 500M in bytes. */ -}}
{{- define "sallyport.bytes" -}}
{{- $units := dict "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexReplaceAll "^[0-9.]+" . "") | default 1.0) -}}
{{- end -}}

{{- /* For how many days of audit files a quantity suffices. */ -}}
{{- define "sallyport.auditDays" -}}
{{- divf (include "sallyport.bytes" (toString .) | float64) (include "sallyport.auditBytesADay" . | float64) | floor | int -}}
{{- end -}}

{{- /* The sinks of audit lines, with the gateway's default. */ -}}
{{- define "sallyport.sinks" -}}
{{- $file := include "sallyport.gatewayFile" . | fromYaml -}}
{{- $sinks := include "sallyport.listAt" (list (include "sallyport.mapAt" (list $file "audit") | fromYaml) "sinks") | fromYamlArray -}}
{{- $sinks | default (list (dict "type" "file" "path" "./audit.jsonl")) | toYaml -}}
{{- end -}}

{{- define "sallyport.auditNotes" -}}
{{- $persistence := .Values.audit.persistence -}}
{{- $audit := include "sallyport.mapAt" (list (include "sallyport.gatewayFile" . | fromYaml) "audit") | fromYaml -}}
{{- $hasFile := false -}}
{{- range include "sallyport.sinks" . | fromYamlArray -}}
{{- if and (kindIs "map" .) (eq (toString .type) "file") }}{{ $hasFile = true }}{{ end -}}
{{- end -}}
{{- $days := include "sallyport.auditDays" (ternary $persistence.size .Values.audit.emptyDir.sizeLimit $persistence.enabled) | int -}}
{{- if .Values.existingConfigMaps.config -}}
NOT CHECKED: where the gateway writes audit lines. A file is kept only below /var/lib/sallyport with audit.persistence.enabled.
{{- else if and $persistence.enabled (not $hasFile) -}}
WARNING: there is a claim for audit files, but gateway.yaml has no sink of type file.
{{- else if $hasFile -}}
{{- if not $persistence.enabled -}}
WARNING: audit files are in the pods and lost with them. Set audit.persistence.enabled, or write to stdout and collect it.
A pod is evicted when its files exceed {{ .Values.audit.emptyDir.sizeLimit }}, which is {{ mul 24 $days }} hours at 10 calls per second.
{{- else if $persistence.existingClaim -}}
Audit files are on the claim {{ $persistence.existingClaim }}.
{{- else -}}
Audit files are on claims, one of {{ $persistence.size }} for each replica, which are kept when the release is removed.
{{- if not $audit.retain }}
WARNING: gateway.yaml has no audit.retain, so files are never removed: a claim is full after {{ $days }} days at 10 calls per
second for each replica, and calls are refused then.
{{- else if lt $days (div (include "sallyport.seconds" $audit.retain) 86400 | int) }}
WARNING: gateway.yaml keeps audit files for {{ $audit.retain }}, but a claim is full after {{ $days }} days at 10 calls per second for
each replica, and calls are refused then.
{{- end }}
{{- end -}}
{{- else -}}
Audit lines go to the output of the pods alone: the cluster must collect it. `sallyport audit verify` reads what it collected.
{{- end -}}
{{- end -}}
