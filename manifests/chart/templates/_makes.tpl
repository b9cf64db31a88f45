{{- /* Whether a namespace or a PriorityClass is the release's to make: one that was there before is not, and stays when the release
goes. Nor is the namespace in which Helm keeps the release. Where no cluster is asked, as by helm template, all are. */ -}}
{{- define "warmpool.makes" -}}
{{- $there := lookup .apiVersion .kind "" .name -}}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" ($there | default dict) -}}
{{- $isOwn := and (eq .kind "Namespace") (eq .name .root.Release.Namespace) -}}
{{- if and (not $isOwn) (or (not $there) (eq $owner .root.Release.Name)) -}}yes{{- end -}}
{{- end -}}
