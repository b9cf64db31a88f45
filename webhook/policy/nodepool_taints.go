package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools of pools with accelerators; where a pool has none, its nodes.
// Requires: a NoSchedule or NoExecute taint that nodes keep, other than those of health and life cycle.
// Why: without one any pod lands beside the placeholder, on the most costly nodes there are, and fills what a Workspace
// was to have.
var nodePoolTaints = &Rule{
	ID:        "nodepool-taints",
	Summary:   "A pool with accelerators is tainted, so that pods that need none do not land on its costly nodes.",
	Fix:       "Add a taint to spec.template.spec.taints, such as nvidia.com/gpu=true:NoSchedule; warmpool makes placeholders and Workspaces tolerate it.",
	Subject:   NodePool,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkNodePoolTaints,
}

func checkNodePoolTaints(a *Audit) []Finding {
	var findings []Finding
	for _, pool := range a.pools.All() {
		stated := slices.ContainsFunc(pool.Config.NodeTaints, func(text string) bool {
			taint, err := config.ParseTaint(text)
			return err == nil && keepsOthersAway(taint)
		})
		if len(pool.Config.Accelerators) > 0 && !stated {
			findings = append(findings, untainted(a, pool)...)
		}
	}
	return findings
}

func untainted(a *Audit, pool *placement.Pool) []Finding {
	name := pool.Config.Name
	var findings []Finding
	if len(pool.Config.NodePools) > 0 {
		for _, f := range unread("NodePools", a.facts.NodePools) {
			findings = append(findings, f.about("", "", "", name))
		}
	}
	for _, np := range pool.NodePools {
		if !slices.ContainsFunc(np.Taints, keepsOthersAway) {
			message := fmt.Sprintf("nodes of pool %s have accelerators and no lasting taint: pods that need none land there", name)
			findings = append(findings, required(field.NewPath("spec", "template", "spec", "taints"), message).about("NodePool", "", np.Name, name))
		}
	}
	if len(pool.NodePools) > 0 || pool.Config.NodeLabel == nil {
		return findings
	}
	nodes := a.nodes(pool)
	var open []string
	for _, node := range nodes {
		if !slices.ContainsFunc(node.Spec.Taints, keepsOthersAway) {
			open = append(open, node.Name)
		}
	}
	if len(open) > 0 {
		message := fmt.Sprintf("%d of %d nodes of pool %s have accelerators and no lasting taint: pods that need none land there: %s", len(open), len(nodes), name, some(open))
		findings = append(findings, required(field.NewPath("spec", "taints"), message).withFix("Have whoever makes the nodes taint them, and list the taint in nodeTaints of the pool.").about("Node", "", open[0], name))
	}
	return findings
}

// keepsOthersAway tells a taint that keeps pods away, for as long as the node is there. Health taints that HyperPod puts
// on every node do not count: whatever runs in such a cluster tolerates them.
func keepsOthersAway(taint corev1.Taint) bool {
	return isHard(taint) && !cluster.IsLifecycleTaint(taint.Key)
}

func isHard(taint corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}
