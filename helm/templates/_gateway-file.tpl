{{- /*
The gateway file decides what the gateway does; the values, what Kubernetes is told of it: how many replicas there may
be, which ports to send to, and which files to mount. They must agree, or pods are ready and answer nobody.
An existing ConfigMap cannot be read when a chart is rendered; NOTES.txt says so.
*/ -}}

{{- /* The text of gateway.yaml. It gets the `state` of the values where it has none. */ -}}
{{- define "sallyport.gatewayText" -}}
{{- $text := index .Values.config "gateway.yaml" | default "" -}}
{{- $file := fromYaml $text -}}
{{- $text -}}
{{- if and (eq .Values.state.type "redis") (not (hasKey $file "Error")) (not (hasKey $file "state")) }}
{{ if not (hasSuffix "\n" $text) }}
{{ end -}}
# Added by the chart.
state: {type: redis, url: {env: REDIS_URL}{{ if include "sallyport.isReplicated" . }}, readiness: strict{{ end }}}
{{ end -}}
{{- end -}}

{{- /* What the gateway file says, as YAML; nothing if it is in an existing ConfigMap. */ -}}
{{- define "sallyport.gatewayFile" -}}
{{- if .Values.existingConfigMaps.config -}}
{}
{{- else -}}
{{- $file := include "sallyport.gatewayText" . | fromYaml -}}
{{- if hasKey $file "Error" }}{{ fail (printf "gateway.yaml cannot be read: %s" $file.Error) }}{{ end -}}
{{- toYaml $file -}}
{{- end -}}
{{- end -}}

{{- /* The map under keys, one in the other, or an empty one. Called with (list $map "key" "key"). */ -}}
{{- define "sallyport.mapAt" -}}
{{- $value := first . -}}
{{- range rest . -}}
{{- $value = kindIs "map" $value | ternary (get (kindIs "map" $value | ternary $value dict) .) nil -}}
{{- end -}}
{{- if kindIs "map" $value -}}{{ toYaml $value }}{{- else -}}{}{{- end -}}
{{- end -}}

{{- /* The list under a key, or an empty one. Called with (list $map "key"). */ -}}
{{- define "sallyport.listAt" -}}
{{- $value := get (index . 0) (index . 1) -}}
{{- if kindIs "slice" $value -}}{{ toYaml $value }}{{- else -}}[]{{- end -}}
{{- end -}}

{{- /* A listener with its defaults. Called with (list $file "data"). */ -}}
{{- define "sallyport.listener" -}}
{{- $listener := include "sallyport.mapAt" (list (index . 0) "listeners" (index . 1)) | fromYaml -}}
host: {{ get $listener "host" | default "127.0.0.1" | quote }}
port: {{ hasKey $listener "port" | ternary (get $listener "port") (get (dict "data" 8080 "ops" 9464 "admin" 9090) (index . 1)) }}
scheme: {{ hasKey $listener "tls" | ternary "HTTPS" "HTTP" }}
{{- end -}}

{{- /* A duration such as 500ms, 45s, 5m, 12h or 30d in whole seconds. */ -}}
{{- define "sallyport.seconds" -}}
{{- $unit := regexReplaceAll "^[0-9]+" (toString .) "" -}}
{{- $number := regexFind "^[0-9]+" (toString .) | int -}}
{{- if eq $unit "ms" -}}1{{- else -}}{{ mul $number (get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) $unit | default 1) }}{{- end -}}
{{- end -}}

{{- /* `shutdown.delay` and `shutdown.drain`, and 10 seconds for what then remains: the end of the audit log, for one. */ -}}
{{- define "sallyport.terminationGrace" -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- $shutdown := include "sallyport.mapAt" (list (include "sallyport.gatewayFile" . | fromYaml) "shutdown") | fromYaml -}}
{{ add (include "sallyport.seconds" ($shutdown.delay | default "5s")) (include "sallyport.seconds" ($shutdown.drain | default "45s")) 10 }}
{{- else -}}
{{ .Values.terminationGracePeriodSeconds }}
{{- end -}}
{{- end -}}

{{- /*
A hash of what a gateway reads at its start alone, so that pods are replaced exactly when a change would otherwise wait
for a restart. Of the listeners that is the address, and whether certificates are used and asked for.
docs/reference/start-and-reload.md#changes-that-wait-for-a-restart
*/ -}}
{{- define "sallyport.restartOnly" -}}
{{- $file := include "sallyport.gatewayFile" . | fromYaml -}}
{{- $kept := pick $file "publicUrl" "keys" "state" "audit" "admin" "metrics" -}}
{{- $addresses := dict -}}
{{- range $name := list "data" "ops" "admin" -}}
{{- $listener := include "sallyport.mapAt" (list $file "listeners" $name) | fromYaml -}}
{{- if or (ne $name "admin") (hasKey $file "admin") -}}
{{- $tls := get $listener "tls" | default dict -}}
{{- $address := include "sallyport.listener" (list $file $name) | fromYaml -}}
{{- $_ := set $addresses $name (merge $address (dict "clientCa" (hasKey $tls "clientCa"))) -}}
{{- end -}}
{{- end -}}
{{- dict "kept" $kept "addresses" $addresses | toJson | sha256sum -}}
{{- end -}}

{{- /* The host of publicUrl, for what sends callers to it. Called with (list . "ingress.hosts"). */ -}}
{{- define "sallyport.publicHost" -}}
{{- $root := index . 0 -}}{{- $value := index . 1 -}}
{{- $file := include "sallyport.gatewayFile" $root | fromYaml -}}
{{- $url := urlParse (get $file "publicUrl" | default "" | toString) -}}
{{- if not $url.host }}{{ fail (printf "%s is empty, and the chart reads no publicUrl to take the host from" $value) }}{{ end -}}
{{- if has (trimSuffix "/" $url.path) (list "") | not }}{{ fail (printf "publicUrl has the path %s, which an outer proxy must strip: %s must say how" $url.path $value) }}{{ end -}}
{{- regexReplaceAll ":[0-9]+$" $url.host "" -}}
{{- end -}}

{{- /* Paths of upstreams and endpoints, one a line. */ -}}
{{- define "sallyport.paths" -}}
{{- $file := include "sallyport.gatewayFile" . | fromYaml -}}
{{- range $kind := list "upstreams" "endpoints" -}}
{{- range $name, $entry := include "sallyport.mapAt" (list $file $kind) | fromYaml }}
{{ kindIs "map" $entry | ternary (get (kindIs "map" $entry | ternary $entry dict) "path") "" | default (printf "/%s" $name) }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "sallyport.checkGatewayFile" -}}
{{- if not .Values.existingConfigMaps.config -}}
{{- if not (hasKey .Values.config "gateway.yaml") }}{{ fail "config has no gateway.yaml" }}{{ end -}}
{{- $file := include "sallyport.gatewayFile" . | fromYaml -}}
{{- $state := get (include "sallyport.mapAt" (list $file "state") | fromYaml) "type" | default "memory" -}}
{{- if ne $state .Values.state.type -}}
{{- fail (printf "state.type is %s, but gateway.yaml says %s" .Values.state.type $state) -}}
{{- end -}}
{{- range $listener, $port := .Values.ports -}}
{{- if or (ne $listener "admin") (hasKey $file "admin") -}}
{{- $said := get (include "sallyport.listener" (list $file $listener) | fromYaml) "port" -}}
{{- if ne (toString $port) (toString $said) -}}
{{- fail (printf "ports.%s is %v, but gateway.yaml has listeners.%s.port %v: nothing would listen where pods are called" $listener $port $listener $said) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.admin.enabled (not (hasKey $file "admin")) -}}
{{- fail "admin.enabled is true, but gateway.yaml has no admin: the listener would not open" -}}
{{- end -}}
{{- include "sallyport.checkMounts" . -}}
{{- end -}}
{{- end -}}

{{- /* Files and folders that gateway.yaml names where only the chart mounts anything. */ -}}
{{- define "sallyport.checkMounts" -}}
{{- $file := include "sallyport.gatewayFile" . | fromYaml -}}
{{- range $sink := include "sallyport.sinks" . | fromYamlArray -}}
{{- if and (kindIs "map" $sink) (eq (toString $sink.type) "file") (not (isAbs (toString $sink.path))) -}}
{{- fail (printf "the audit file %v of gateway.yaml is beside it, where nothing can be written; /var/lib/sallyport/audit.jsonl can be" $sink.path) -}}
{{- end -}}
{{- end -}}
{{- range $kind := list "policies" "pins" -}}
{{- $dir := get (include "sallyport.mapAt" (list $file $kind) | fromYaml) "dir" | toString -}}
{{- $mounted := printf "/etc/sallyport/%s" $kind -}}
{{- $isRelative := and (ne $dir "") (not (isAbs $dir)) (ne (clean $dir) ".") -}}
{{- if or $isRelative (and (or (index $.Values $kind) (index $.Values.existingConfigMaps $kind)) (ne (clean $dir) $mounted)) -}}
{{- fail (printf "gateway.yaml must say %s: {dir: %s}, where the chart mounts them%s" $kind $mounted (ternary (printf ", not %s" $dir) "" (ne $dir ""))) -}}
{{- end -}}
{{- end -}}
{{- range $key := include "sallyport.listAt" (list $file "keys") | fromYamlArray -}}
{{- $path := kindIs "map" $key | ternary (get (kindIs "map" $key | ternary $key dict) "file") "" | toString -}}
{{- if and (ne $path "") (ne $path "<nil>") (not (isAbs $path)) -}}
{{- fail (printf "gateway.yaml reads the key %s beside it, where only the files of config are; the chart mounts /run/secrets/sallyport/%s" $path (first $.Values.key.items)) -}}
{{- end -}}
{{- if and (hasPrefix "/run/secrets/sallyport/" $path) (not (has (trimPrefix "/run/secrets/sallyport/" $path) $.Values.key.items)) -}}
{{- fail (printf "gateway.yaml reads the key %s, but key.items mounts only: %s" $path (join ", " $.Values.key.items)) -}}
{{- end -}}
{{- end -}}
{{- range $listener, $secret := .Values.tls -}}
{{- $used := include "sallyport.mapAt" (list $file "listeners" $listener "tls") -}}
{{- $folder := printf "/etc/sallyport/tls/%s/" $listener -}}
{{- if and (contains $folder $used) (not $secret) -}}
{{- fail (printf "gateway.yaml reads %s, but tls.%s names no Secret to mount there" $folder $listener) -}}
{{- end -}}
{{- if and $secret (not (contains $folder (toYaml $file))) -}}
{{- fail (printf "tls.%s names the Secret %s, but gateway.yaml reads nothing in %s" $listener $secret $folder) -}}
{{- end -}}
{{- end -}}
{{- end -}}
