{{- /*
The gateway file decides what the gateway does; the values, what Kubernetes is told of it: how many replicas
there may be, and which ports to send to. They must agree, or pods are ready and answer nobody.
An existing ConfigMap cannot be read when a chart is rendered; NOTES.txt says so.
*/ -}}

{{- /* What the gateway file says, with its defaults, as YAML: the parts that the chart depends on. */ -}}
{{- define "sallyport.gatewayFile" -}}
{{- $file := dict -}}
{{- if not .Values.existingConfigMaps.config -}}
{{- $file = index .Values.config "gateway.yaml" | default "" | fromYaml -}}
{{- if hasKey $file "Error" }}{{ fail (printf "gateway.yaml cannot be read: %s" $file.Error) }}{{ end -}}
{{- end -}}
{{- $listeners := include "sallyport.mapAt" (list $file "listeners") | fromYaml -}}
{{- $data := include "sallyport.mapAt" (list $listeners "data") | fromYaml -}}
{{- $ops := include "sallyport.mapAt" (list $listeners "ops") | fromYaml -}}
{{- $state := include "sallyport.mapAt" (list $file "state") | fromYaml -}}
state: {{ get $state "type" | default "memory" | quote }}
dataPort: {{ hasKey $data "port" | ternary (get $data "port") 8080 }}
opsPort: {{ hasKey $ops "port" | ternary (get $ops "port") 9464 }}
dataHost: {{ get $data "host" | default "127.0.0.1" | quote }}
opsHost: {{ get $ops "host" | default "127.0.0.1" | quote }}
opsScheme: {{ hasKey $ops "tls" | ternary "HTTPS" "HTTP" }}
{{- end -}}

{{- /* The map under a key, or an empty one. Called with (list $map "key"). */ -}}
{{- define "sallyport.mapAt" -}}
{{- $value := get (index . 0) (index . 1) -}}
{{- if kindIs "map" $value -}}{{ toYaml $value }}{{- else -}}{}{{- end -}}
{{- end -}}

{{- define "sallyport.checkGatewayFile" -}}
{{- if not .Values.existingConfigMaps.config -}}
{{- $file := include "sallyport.gatewayFile" . | fromYaml -}}
{{- if ne $file.state .Values.state.type -}}
{{- fail (printf "state.type is %s, but gateway.yaml says %s" .Values.state.type $file.state) -}}
{{- end -}}
{{- include "sallyport.checkPort" (list "service.port" .Values.service.port "data" $file.dataPort) -}}
{{- include "sallyport.checkPort" (list "metrics.port" .Values.metrics.port "ops" $file.opsPort) -}}
{{- end -}}
{{- end -}}

{{- /* Called with (list "the value's name" its-value "listener" its-port). */ -}}
{{- define "sallyport.checkPort" -}}
{{- $name := index . 0 -}}{{- $value := index . 1 -}}{{- $listener := index . 2 -}}{{- $port := index . 3 -}}
{{- if ne (toString $value) (toString $port) -}}
{{- fail (printf "%s is %v, but gateway.yaml has listeners.%s.port %v: nothing would listen where pods are called" $name $value $listener $port) -}}
{{- end -}}
{{- end -}}
