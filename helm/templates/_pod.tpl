{{- /* The template of the pods, the same for a Deployment and a StatefulSet. */ -}}
{{- define "sallyport.pod" -}}
{{- $ops := include "sallyport.listener" (list (include "sallyport.gatewayFile" . | fromYaml) "ops") | fromYaml -}}
{{- $labels := mergeOverwrite dict (deepCopy .Values.commonLabels) .Values.podLabels (include "sallyport.labels" . | fromYaml) -}}
{{- $annotations := mergeOverwrite dict (deepCopy .Values.commonAnnotations) .Values.podAnnotations -}}
{{- if not .Values.existingConfigMaps.config -}}
{{- $annotations = mergeOverwrite $annotations (dict "checksum/restart-only" (include "sallyport.restartOnly" .)) -}}
{{- end -}}
metadata:
  labels:
    {{- toYaml $labels | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "sallyport.serviceAccount" . | quote }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ include "sallyport.terminationGrace" . }}
  securityContext:
    {{- include "sallyport.podSecurity" . | nindent 4 }}
  {{- range $key := list "imagePullSecrets" "initContainers" "nodeSelector" "tolerations" "affinity" }}
  {{- with index $.Values $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- range $key := list "priorityClassName" "runtimeClassName" }}
  {{- with index $.Values $key }}
  {{ $key }}: {{ . | quote }}
  {{- end }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    {{- $selector := dict "labelSelector" (dict "matchLabels" (include "sallyport.selector" $ | fromYaml)) }}
    {{- toYaml (list (merge (deepCopy .) $selector)) | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    - name: sallyport
      image: {{ include "sallyport.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: ["serve", "-c", "/etc/sallyport/config/gateway.yaml"]
      securityContext:
        {{- include "sallyport.containerSecurity" . | nindent 8 }}
      {{- with include "sallyport.env" . | trim }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: http, containerPort: {{ .Values.ports.data }}}
        - {name: metrics, containerPort: {{ .Values.ports.ops }}}
        {{- if .Values.admin.enabled }}
        - {name: admin, containerPort: {{ .Values.ports.admin }}}
        {{- end }}
      {{- range $probe, $path := dict "startup" "/livez" "readiness" "/readyz" "liveness" "/livez" }}
      {{ $probe }}Probe:
        httpGet: {path: {{ $path }}, port: metrics, scheme: {{ $ops.scheme }}}
        {{- toYaml (index $.Values.probes $probe) | nindent 8 }}
      {{- end }}
      {{- with .Values.lifecycle }}
      lifecycle:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        # Directories, never subPath: a file mounted by subPath does not see a changed ConfigMap or Secret.
        {{- range $kind := list "config" "policies" "pins" }}
        - {name: {{ $kind }}, mountPath: /etc/sallyport/{{ $kind }}, readOnly: true}
        {{- end }}
        - {name: audit, mountPath: /var/lib/sallyport}
        - {name: key, mountPath: /run/secrets/sallyport, readOnly: true}
        {{- range $listener, $secret := .Values.tls }}
        {{- if $secret }}
        - {name: tls-{{ $listener }}, mountPath: /etc/sallyport/tls/{{ $listener }}, readOnly: true}
        {{- end }}
        {{- end }}
        {{- if include "sallyport.hasCa" . }}
        - {name: ca, mountPath: /etc/sallyport/ca, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- range $kind := list "config" "policies" "pins" }}
    - name: {{ $kind }}
      configMap:
        name: {{ include "sallyport.configMap" (list $ $kind) | quote }}
    {{- end }}
    - name: key
      secret:
        secretName: {{ .Values.key.existingSecret | quote }}
        defaultMode: 288 # 0440
        items:
          {{- range .Values.key.items }}
          - {key: {{ . | quote }}, path: {{ . | quote }}}
          {{- end }}
    {{- range $listener, $secret := .Values.tls }}
    {{- if $secret }}
    - name: tls-{{ $listener }}
      secret:
        secretName: {{ $secret | quote }}
        defaultMode: 288 # 0440
    {{- end }}
    {{- end }}
    {{- with .Values.ca.existingConfigMap }}
    - name: ca
      configMap:
        name: {{ . | quote }}
    {{- end }}
    {{- with .Values.ca.existingSecret }}
    - name: ca
      secret:
        secretName: {{ . | quote }}
        defaultMode: 288 # 0440
    {{- end }}
    {{- if eq (include "sallyport.workload" .) "Deployment" }}
    - name: audit
      {{- if .Values.audit.persistence.enabled }}
      persistentVolumeClaim:
        claimName: {{ .Values.audit.persistence.existingClaim | quote }}
      {{- else }}
      emptyDir:
        sizeLimit: {{ .Values.audit.emptyDir.sizeLimit | quote }}
      {{- end }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "sallyport.hasCa" -}}
{{- if or .Values.ca.existingConfigMap .Values.ca.existingSecret -}}true{{- end -}}
{{- end -}}

{{- define "sallyport.env" -}}
{{- if eq .Values.state.type "redis" }}
- name: REDIS_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.state.redis.existingSecret | quote }}
      key: {{ .Values.state.redis.item | quote }}
{{- end }}
{{- if include "sallyport.hasCa" . }}
- name: NODE_EXTRA_CA_CERTS
  value: {{ printf "/etc/sallyport/ca/%s" .Values.ca.item | quote }}
{{- end }}
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secretName | quote }}
      key: {{ .key | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
