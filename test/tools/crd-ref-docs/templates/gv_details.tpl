{{- define "gvDetails" -}}
## {{ .GroupVersionString }}

{{ .Doc }}
{{ $gv := . }}
{{- $seen := dict -}}
{{- range .SortedKinds -}}
{{ template "tree" (dict "type" ($gv.TypeForKind .) "seen" $seen) }}
{{- end }}
{{- end -}}
