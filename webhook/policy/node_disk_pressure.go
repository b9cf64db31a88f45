package policy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Applies to: the nodes of pools.
// Requires: no condition DiskPressure, and no taint that says the same.
// Why: short of disk the kubelet removes images that no running container uses, the pre-pulled one first of all, and
// evicts pods. The placeholder may go on running: the pool looks warm and is cold.
var nodeDiskPressure = &Rule{
	ID:       "node-disk-pressure",
	Summary:  "No node of the pool is short of disk: the kubelet would remove the pre-pulled images.",
	Fix:      "Give the pool's nodes a larger disk for images, or pre-pull fewer images; then replace the node.",
	Subject:  Node,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		a.unread("nodes", a.facts.Nodes)
		for _, pool := range a.pools.All() {
			for _, node := range a.Nodes(pool) {
				judgeDisk(a.about("Node", "", node.Name, pool.Config.Name), node)
			}
		}
	},
}

func judgeDisk(about about, node *corev1.Node) {
	const effect = "the kubelet removes images that no running container uses, pre-pulled ones among them"
	for i, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeDiskPressure && condition.Status == corev1.ConditionTrue {
			about.invalid(field.NewPath("status", "conditions").Index(i), string(condition.Type), "the node is short of disk%s: %s", since(condition.LastTransitionTime), effect)
			return
		}
	}
	for i, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeDiskPressure {
			about.invalid(field.NewPath("spec", "taints").Index(i), taint.ToString(), "the node is short of disk: %s", effect)
			return
		}
	}
}
