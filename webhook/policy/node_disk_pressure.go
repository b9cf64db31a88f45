package policy

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: the nodes of pools.
// Requires: no condition DiskPressure, and no taint that says the same.
// Why: short of disk the kubelet removes images that no running container uses, the pre-pulled one first of all, and
// evicts pods. The placeholder may go on running: the pool looks warm and is cold.
var nodeDiskPressure = &Rule{
	ID:        "node-disk-pressure",
	Summary:   "No node of the pool is short of disk: the kubelet would remove the pre-pulled images.",
	Fix:       "Give the pool's nodes a larger disk for images, or pre-pull fewer images; then replace the node.",
	Subject:   Node,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkDiskPressure,
}

func checkDiskPressure(a *Audit) []Finding {
	findings := unread("nodes", a.facts.Nodes)
	for _, pool := range a.pools.All() {
		for _, node := range a.nodes(pool) {
			if f, found := diskPressure(node); found {
				findings = append(findings, f.about("Node", "", node.Name, pool.Config.Name))
			}
		}
	}
	return findings
}

func diskPressure(node *corev1.Node) (f Finding, found bool) {
	const effect = "the kubelet removes images that no running container uses, pre-pulled ones among them"
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		if condition.Type != corev1.NodeDiskPressure || condition.Status != corev1.ConditionTrue {
			continue
		}
		since := ""
		if !condition.LastTransitionTime.IsZero() {
			since = " since " + condition.LastTransitionTime.UTC().Format(time.RFC3339)
		}
		return invalid(field.NewPath("status", "conditions").Index(i), string(condition.Type), fmt.Sprintf("the node is short of disk%s: %s", since, effect)), true
	}
	i := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeDiskPressure })
	if i < 0 {
		return Finding{}, false
	}
	return invalid(field.NewPath("spec", "taints").Index(i), node.Spec.Taints[i].ToString(), "the node is short of disk: "+effect), true
}
