{{- /* A type and, in the order of its fields, the types it is made of: the reader meets each where it is first used. */ -}}
{{- define "tree" -}}
{{- $seen := .seen -}}
{{- with .type -}}
{{- if not (or .IsBasic (hasPrefix "k8s.io/" .Package) (hasKey $seen .Name)) -}}
{{- $_ := set $seen .Name true -}}
{{ template "type" . }}
{{- range .Members -}}
{{- template "tree" (dict "type" .Type "seen" $seen) -}}
{{- with .Type.UnderlyingType -}}
{{- template "tree" (dict "type" . "seen" $seen) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "type" }}
{{ if .GVK }}##{{ else }}###{{ end }}# {{ .Name }}

{{ .Doc }}
{{ if .EnumValues }}
| Value | Meaning |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ regexReplaceAll "^[A-Z][A-Za-z]+:? " .Doc "" | replace "\n" " " | trim | markdownRenderFieldDoc }} |
{{- end }}
{{ else if .Members }}
| Field | Type | Default | Description |
| --- | --- | --- | --- |
{{- range .Members }}
{{- if ne .Name "metadata" }}
| `{{ .Name }}` | {{ if eq .Type.Name "UID" }}string{{ else }}{{ markdownRenderType .Type }}{{ end }} | {{ template "default" . }} | {{ .Doc | replace "\n" " " | markdownRenderFieldDoc }} |
{{- end }}
{{- end }}
{{ end }}
{{- end -}}
