package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: NodePools of pools whose placeholders carry karpenter.sh/do-not-disrupt.
// Requires: a terminationGracePeriod, or expireAfter Never.
// Why: do-not-disrupt does not stop expiry, neither on pods nor on the NodePool's nodes, and no budget does. The node is
// cordoned and drained, the placeholder is not evicted, and without a time limit the node stays like that permanently:
// paid for, and of no use.
var nodePoolExpiry = &Rule{
	ID:        "nodepool-expiry",
	Summary:   "Nodes that expire have a terminationGracePeriod: with a do-not-disrupt placeholder on it an expired node would hang half-drained permanently.",
	Fix:       "Set spec.template.spec.terminationGracePeriod (such as 24h), or expireAfter: Never.",
	Subject:   NodePool,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkNodePoolExpiry,
}

func checkNodePoolExpiry(a *Audit) []Finding {
	if unread := unread("Deployments", a.facts.Deployments); unread != nil {
		return unread
	}
	return a.eachNodePool(func(np poolNodePool) []Finding {
		if np.TerminationGracePeriod != "" || np.ExpireAfter == "Never" {
			return nil
		}
		held := a.of(np.pool)
		i := slices.IndexFunc(held, isNotDisrupted)
		if i < 0 {
			return nil
		}
		after := cmp.Or(np.ExpireAfter, "720h, Karpenter's default")
		message := fmt.Sprintf("nodes expire (expireAfter: %s); placeholder %s/%s is do-not-disrupt, so an expired node is cordoned but never drained, and stays permanently", after, held[i].Namespace, held[i].Name)
		return []Finding{required(field.NewPath("spec", "template", "spec", "terminationGracePeriod"), message)}
	})
}

// isNotDisrupted tells whether Karpenter heeds the do-not-disrupt annotation of the placeholder's pods.
func isNotDisrupted(o *Object) bool {
	value := o.Meta.Annotations[doNotDisrupt]
	duration, err := time.ParseDuration(value)
	return value == "true" || err == nil && duration > 0
}
