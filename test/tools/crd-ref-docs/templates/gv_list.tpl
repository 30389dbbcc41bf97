{{- define "gvList" -}}
# API reference

Generated from the Go types by `make generate`; `kubectl explain` shows the same text.
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
