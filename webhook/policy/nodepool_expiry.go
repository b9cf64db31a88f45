package policy

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Applies to: NodePools of pools whose placeholders carry karpenter.sh/do-not-disrupt.
// Requires: a terminationGracePeriod, or expireAfter Never.
// Why: do-not-disrupt does not stop expiry, neither on pods nor on the NodePool's nodes, and no budget does. The node is
// cordoned and drained, the placeholder is not evicted, and without a time limit the node stays like that permanently:
// paid for, and of no use.
var nodePoolExpiry = &Rule{
	ID:       "nodepool-expiry",
	Summary:  "Nodes that expire have a terminationGracePeriod: with a do-not-disrupt placeholder on it an expired node would hang half-drained permanently.",
	Fix:      "Set spec.template.spec.terminationGracePeriod (such as 24h), or expireAfter: Never.",
	Subject:  NodePool,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		if a.unread("Deployments", a.facts.Deployments) {
			return
		}
		a.eachNodePool(func(np poolNodePool) {
			if np.TerminationGracePeriod != "" || np.ExpireAfter == "Never" {
				return
			}
			held := a.Of(np.pool)
			if i := slices.IndexFunc(held, isNotDisrupted); i >= 0 {
				np.required(field.NewPath("spec", "template", "spec", "terminationGracePeriod"),
					"nodes expire (expireAfter: %s); placeholder %s/%s is do-not-disrupt, so an expired node is cordoned but never drained, and stays permanently",
					cmp.Or(np.ExpireAfter, "720h, Karpenter's default"), held[i].Namespace, held[i].Name)
			}
		})
	},
}
