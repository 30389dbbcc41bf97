{{- /* The operator's image. */ -}}
{{- define "tideline.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}{{ end }}
{{- end }}

{{- /* The claim of the ledger's file; empty for none. */ -}}
{{- define "tideline.claim" -}}
{{- $elsewhere := or .Values.components.ha .Values.ledger.postgres.secretName }}
{{- with .Values.ledger.claim }}{{ .existing | default (ternary "tideline-ledger" "" (and (ne .size "") (not $elsewhere))) }}{{ end }}
{{- end }}

{{- /* What differs from the file, by values of its own and by where the ledger is. */ -}}
{{- define "tideline.overrides" -}}
{{- $own := deepCopy .Values.configuration }}
{{- if .Values.ledger.postgres.secretName }}
{{- $own = mergeOverwrite $own (dict "ledger" (dict "file" "" "postgresDSNFile" "/etc/tideline-ledger/dsn")) }}
{{- end }}
{{- toYaml $own }}
{{- end }}

{{- /* The operator's configuration: the file as it is, unless something differs. */ -}}
{{- define "tideline.configuration" -}}
{{- $file := .Files.Get "files/configuration.yaml" }}
{{- $overrides := include "tideline.overrides" . | fromYaml }}
{{- if $overrides }}{{ toYaml (mergeOverwrite ($file | fromYaml) $overrides) }}{{ else }}{{ $file }}{{ end }}
{{- end }}

{{- /* The name ends in a hash of the file, so that another file rolls the Deployment. */ -}}
{{- define "tideline.configurationName" -}}
tideline-configuration-{{ include "tideline.configuration" . | sha256sum | trunc 10 }}
{{- end }}

{{- define "tideline.mounts" -}}
{{- if .Values.ledger.postgres.secretName -}}
- mountPath: /etc/tideline-ledger
  name: ledger
  readOnly: true
{{- end }}
{{- end }}

{{- define "tideline.data" -}}
{{- with include "tideline.claim" . -}}
- name: data
  persistentVolumeClaim:
    claimName: {{ . }}
{{- else -}}
- name: data
  emptyDir: {}
{{- end }}
{{- with .Values.ledger.postgres }}{{ if .secretName }}
- name: ledger
  secret:
    secretName: {{ .secretName }}
    items:
    - key: {{ .key }}
      path: dsn
{{- end }}{{ end }}
{{- end }}

{{- define "tideline.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
