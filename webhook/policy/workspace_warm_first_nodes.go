package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// emptyBesideWarm finds the nodes that no preference keeps a Workspace from: it has to preempt no one there, and the
// scheduler preempts only where a pod fits on no node.
func emptyBesideWarm(a *Audit) []Finding {
	if !a.facts.Pods.Known() {
		return nil // warm-count says so
	}
	taken := map[string]bool{}
	for _, o := range a.workspaces {
		taken[o.Spec.NodeName] = true
	}
	warmOn := map[string][]string{} // by pool
	for _, o := range a.placeholders {
		for _, pod := range a.pods(o) {
			taken[pod.Spec.NodeName] = true
			if warm(pod) {
				warmOn[o.PoolName()] = append(warmOn[o.PoolName()], pod.Spec.NodeName)
			}
		}
	}
	var findings []Finding
	for _, pool := range a.pools.All() {
		nodes := warmOn[pool.Config.Name]
		slices.Sort(nodes)
		nodes = slices.Compact(nodes)
		for _, node := range a.nodes(pool) {
			if len(nodes) == 0 || taken[node.Name] || a.isNew(node) || !takesPods(node) {
				continue
			}
			findings = append(findings, invalid(field.NewPath("metadata", "name"), node.Name, fmt.Sprintf(
				"holds neither placeholder nor Workspace, and %d of the pool's nodes are warm (%s): a Workspace that has no room beside a placeholder takes this one first, and starts cold",
				len(nodes), clip(strings.Join(nodes, ", ")))).
				withFix("Raise replicas of the placeholders, or CPA's min, to one for each node, or let the node go: consolidationPolicy WhenEmpty does that.").
				about("Node", "", node.Name, pool.Config.Name))
		}
	}
	return findings
}

// isNew tells that a node may still get its placeholder.
func (a *Audit) isNew(node *corev1.Node) bool {
	return a.now.Sub(node.CreationTimestamp.Time) < patience
}

// takesPods tells that a node is ready and that nothing drains it.
func takesPods(node *corev1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && node.DeletionTimestamp == nil && !node.Spec.Unschedulable
}
