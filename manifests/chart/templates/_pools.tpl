{{- /* What the values say of pools, in the words of Kubernetes. All of these give JSON, but for the configuration. */ -}}

{{- /* The WarmPoolConfiguration: the values' own fields, and the pools without what only the chart knows. */ -}}
{{- define "warmpool.configuration" -}}
{{- $config := dict "apiVersion" "config.warmpool.sh/v1alpha1" "kind" "WarmPoolConfiguration" -}}
{{- range $field := list "placeholders" "workspaces" "auditInterval" "rules" "exemptions" -}}
{{- with index $.Values $field -}}{{- $_ := set $config $field . -}}{{- end -}}
{{- end -}}
{{- $pools := list -}}
{{- range .Values.pools -}}{{- $pools = append $pools (omit . "taints" "placeholders") -}}{{- end -}}
{{- set $config "pools" $pools | toYaml -}}
{{- end -}}

{{- /* How Workspace pods are known. */ -}}
{{- define "warmpool.selector" -}}
{{- $usual := dict "matchExpressions" (list (dict "key" "workspace.jupyter.org/workspace-name" "operator" "Exists")) -}}
{{- .Values.workspaces.selector | default $usual | toJson -}}
{{- end -}}

{{- /* The label of a pool's nodes, as one requirement. */ -}}
{{- define "warmpool.nodes" -}}
{{- if .nodeLabel -}}
{{- dict "key" .nodeLabel.key "operator" "In" "values" .nodeLabel.values | toJson -}}
{{- else -}}
{{- dict "key" "karpenter.sh/nodepool" "operator" "In" "values" .nodePools | toJson -}}
{{- end -}}
{{- end -}}

{{- /* Nodes that are no pool's, as node selector terms: one requirement for each label that pools have. */ -}}
{{- define "warmpool.elsewhere" -}}
{{- include "warmpool.check" . -}}
{{- $keys := list -}}
{{- $values := dict -}}
{{- range .Values.pools -}}
{{- $nodes := include "warmpool.nodes" . | fromJson -}}
{{- if not (has $nodes.key $keys) -}}{{- $keys = append $keys $nodes.key -}}{{- end -}}
{{- $_ := set $values $nodes.key (concat (get $values $nodes.key | default list) $nodes.values) -}}
{{- end -}}
{{- $requirements := list -}}
{{- range $keys -}}{{- $requirements = append $requirements (dict "key" . "operator" "NotIn" "values" (get $values .)) -}}{{- end -}}
{{- list (dict "matchExpressions" $requirements) | toJson -}}
{{- end -}}

{{- /* The tolerations of a pool's taints. */ -}}
{{- define "warmpool.tolerations" -}}
{{- $tolerations := list -}}
{{- range concat (.taints | default list) (.nodeTaints | default list) | uniq -}}
{{- $parts := splitList ":" . -}}
{{- $taint := splitn "=" 2 (first $parts) -}}
{{- $toleration := dict "key" $taint._0 "effect" (last $parts) -}}
{{- if $taint._1 -}}
{{- $_ := set $toleration "operator" "Equal" -}}{{- $_ := set $toleration "value" $taint._1 -}}
{{- else -}}
{{- $_ := set $toleration "operator" "Exists" -}}
{{- end -}}
{{- $tolerations = append $tolerations $toleration -}}
{{- end -}}
{{- $tolerations | toJson -}}
{{- end -}}

{{- /* CPA's ConfigMap: what the values leave out is written, as CPA's own defaults are others. */ -}}
{{- define "warmpool.scaling" -}}
{{- if .ladder -}}
{{- dict "ladder" (toJson .ladder) | toJson -}}
{{- else -}}
{{- $linear := dict "preventSinglePointFailure" true "includeUnschedulableNodes" false -}}
{{- range $name, $value := . -}}{{- $_ := set $linear $name $value -}}{{- end -}}
{{- dict "linear" (toJson $linear) | toJson -}}
{{- end -}}
{{- end -}}

{{- /* All placeholder Deployments. */ -}}
{{- define "warmpool.placeholders" -}}
{{- include "warmpool.check" . -}}
{{- $all := list -}}
{{- range $pool := .Values.pools -}}
{{- $nodes := include "warmpool.nodes" $pool | fromJson -}}
{{- range $p := $pool.placeholders -}}
{{- range $zone := $p.zones | default (list "") -}}
{{- $name := $p.name | default (printf "spaces-placeholder-%s" $pool.name) -}}
{{- $terms := list $nodes -}}
{{- if $zone -}}
{{- $name = printf "%s-%s" $name $zone -}}
{{- $terms = append $terms (dict "key" "topology.kubernetes.io/zone" "operator" "In" "values" (list $zone)) -}}
{{- end -}}
{{- $requests := dict -}}
{{- range $resource, $quantity := $p.requests -}}{{- $_ := set $requests $resource (toString $quantity) -}}{{- end -}}
{{- $labels := printf "%s in (%s)" $nodes.key (join "," $nodes.values) -}}
{{- if eq (len $nodes.values) 1 -}}{{- $labels = printf "%s=%s" $nodes.key (first $nodes.values) -}}{{- end -}}
{{- $one := dict "name" $name "type" (trimPrefix "spaces-placeholder-" $name) "pool" $pool.name "nodes" $terms "nodeLabels" $labels
      "karpenter" (eq ($pool.autoscaler | default "Karpenter") "Karpenter") "images" ($p.images | default list) "requests" $requests
      "tolerations" (include "warmpool.tolerations" $pool | fromJsonArray) -}}
{{- if eq (dig "size" "mode" "" $pool) "Apply" -}}{{- $_ := set $one "byDemand" true -}}{{- end -}}
{{- if hasKey $p "replicas" -}}{{- $_ := set $one "replicas" $p.replicas -}}{{- end -}}
{{- with $p.scaling -}}{{- $_ := set $one "scaling" (include "warmpool.scaling" . | fromJson) -}}{{- end -}}
{{- $all = append $all $one -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $all | toJson -}}
{{- end -}}
