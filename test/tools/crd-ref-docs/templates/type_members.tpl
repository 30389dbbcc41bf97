{{- /* What a field is when it is not given: its default, or that it must be given. */ -}}
{{- define "default" -}}
{{- $required := false -}}
{{- range .Validation }}{{ if hasPrefix "Required:" . }}{{ $required = true }}{{ end }}{{ end -}}
{{- if $required }}required{{ else if and .Default (not (hasPrefix "{" .Default)) }}`{{ .Default }}`{{ end -}}
{{- end -}}
