{{- /* Values that contradict each other: what a schema cannot say, with the field. */ -}}
{{- define "warmpool.check" -}}
{{- if eq .Values.namespace .Values.placeholders.namespace -}}
{{- fail (printf "placeholders.namespace: %s is warmpool's own namespace, in which nothing is sent to the webhooks; name another" .Values.namespace) -}}
{{- end -}}
{{- $pools := dict -}}{{- $nodes := dict -}}{{- $names := dict -}}
{{- range $i, $pool := .Values.pools -}}
{{- $at := printf "pools[%d]" $i -}}
{{- if hasKey $pools $pool.name -}}
{{- fail (printf "%s.name: pool %s is in the list already; give each pool its own name" $at $pool.name) -}}
{{- end -}}
{{- $_ := set $pools $pool.name true -}}
{{- if and $pool.nodePools $pool.nodeLabel -}}
{{- fail (printf "%s.nodeLabel: the pool has nodePools too; keep one of nodePools and nodeLabel" $at) -}}
{{- else if not (or $pool.nodePools $pool.nodeLabel) -}}
{{- fail (printf "%s.nodePools: name at least one Karpenter NodePool, or set nodeLabel where nodes do not come from Karpenter" $at) -}}
{{- end -}}
{{- $label := include "warmpool.nodes" $pool | fromJson -}}
{{- range $label.values -}}
{{- $claim := printf "%s=%s" $label.key . -}}
{{- if hasKey $nodes $claim -}}
{{- fail (printf "%s: pools %s and %s both claim the nodes with label %s, and a node belongs to one pool only" $at (get $nodes $claim) $pool.name $claim) -}}
{{- end -}}
{{- $_ := set $nodes $claim $pool.name -}}
{{- end -}}
{{- range $j, $p := $pool.placeholders -}}
{{- $here := printf "%s.placeholders[%d]" $at $j -}}
{{- include "warmpool.checkPlaceholder" (dict "pool" $pool "placeholder" $p "at" $here) -}}
{{- range $zone := $p.zones | default (list "") -}}
{{- $name := $p.name | default (printf "spaces-placeholder-%s" $pool.name) -}}
{{- if $zone -}}{{- $name = printf "%s-%s" $name $zone -}}{{- end -}}
{{- if hasKey $names $name -}}
{{- fail (printf "%s.name: %s has the Deployment %s already; set a name that no other has" $here (get $names $name) $name) -}}
{{- end -}}
{{- $_ := set $names $name $here -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "warmpool.checkPlaceholder" -}}
{{- $p := .placeholder -}}
{{- if and $p.scaling (hasKey $p "replicas") -}}
{{- fail (printf "%s.replicas: CPA sets the number, by scaling; keep one of replicas and scaling" .at) -}}
{{- end -}}
{{- $byDemand := eq (dig "size" "mode" "" .pool) "Apply" -}}
{{- if and $byDemand (or $p.scaling (hasKey $p "replicas")) -}}
{{- fail (printf "%s: warmpool sets the number, by the pool's size; keep one of size with mode Apply, scaling and replicas" .at) -}}
{{- end -}}
{{- if not (or $p.scaling (hasKey $p "replicas") $byDemand) -}}
{{- fail (printf "%s.replicas: say how many placeholders there are, by replicas or by scaling, or have warmpool find it by the pool's size with mode Apply" .at) -}}
{{- end -}}
{{- with $p.scaling -}}
{{- if and .ladder (or .nodesPerReplica .coresPerReplica .min .max) -}}
{{- fail (printf "%s.scaling.ladder: CPA goes by a ladder or by linear parameters; keep one of them" $.at) -}}
{{- end -}}
{{- if and .max (gt (int .min) (int .max)) -}}
{{- fail (printf "%s.scaling.min: %d is more than max, %d" $.at (int .min) (int .max)) -}}
{{- end -}}
{{- if not (or .ladder .nodesPerReplica .coresPerReplica) -}}
{{- fail (printf "%s.scaling.nodesPerReplica: CPA needs a ratio; set nodesPerReplica, or replicas instead of scaling for a fixed number" $.at) -}}
{{- end -}}
{{- end -}}
{{- if and .pool.accelerators (not (include "warmpool.device" $p)) -}}
{{- fail (printf "%s.requests: pool %s has accelerators (%s) and the placeholder holds none: a Workspace would find no free one on its node" .at .pool.name (join ", " .pool.accelerators)) -}}
{{- end -}}
{{- end -}}

{{- /* The extended resource that a placeholder holds; none is empty. */ -}}
{{- define "warmpool.device" -}}
{{- $devices := list -}}
{{- range $name, $quantity := .requests -}}{{- if contains "/" $name -}}{{- $devices = append $devices $name -}}{{- end -}}{{- end -}}
{{- with sortAlpha $devices -}}{{- first . -}}{{- end -}}
{{- end -}}
