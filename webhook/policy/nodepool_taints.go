package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools of pools with accelerators; where a pool has none, its nodes.
// Requires: a NoSchedule or NoExecute taint that nodes keep, other than those of health and life cycle.
// Why: without one any pod lands beside the placeholder, on the most costly nodes there are, and fills what a Workspace
// was to have.
var nodePoolTaints = &Rule{
	ID:       "nodepool-taints",
	Summary:  "A pool with accelerators is tainted, so that pods that need none do not land on its costly nodes.",
	Fix:      "Add a taint to spec.template.spec.taints, such as nvidia.com/gpu=true:NoSchedule; warmpool makes placeholders and Workspaces tolerate it.",
	Subject:  NodePool,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		for _, pool := range a.pools.All() {
			if len(pool.Config.Accelerators) > 0 && !slices.ContainsFunc(pool.Config.Taints(), keepsOthersAway) {
				judgeTaints(a, pool)
			}
		}
	},
}

func judgeTaints(a *Audit, pool *placement.Pool) {
	name := pool.Config.Name
	if len(pool.Config.NodePools) > 0 && !a.facts.NodePools.Known() {
		a.unverified("NodePools: %s", a.facts.NodePools.Reason()).Pool = name
	}
	for _, np := range pool.NodePools {
		if !slices.ContainsFunc(np.Taints, keepsOthersAway) {
			a.about("NodePool", "", np.Name, name).required(field.NewPath("spec", "template", "spec", "taints"),
				"nodes of pool %s have accelerators and no lasting taint: pods that need none land there", name)
		}
	}
	if len(pool.NodePools) > 0 || pool.Config.NodeLabel == nil {
		return
	}
	nodes := a.Nodes(pool)
	var open []string
	for _, node := range nodes {
		if !slices.ContainsFunc(node.Spec.Taints, keepsOthersAway) {
			open = append(open, node.Name)
		}
	}
	if len(open) > 0 {
		a.about("Node", "", open[0], name).required(field.NewPath("spec", "taints"),
			"%d of %d nodes of pool %s have accelerators and no lasting taint: pods that need none land there: %s", len(open), len(nodes), name, some(open)).
			withFix("Have whoever makes the nodes taint them, and list the taint in nodeTaints of the pool.")
	}
}
