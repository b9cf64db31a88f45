package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
)

// Applies to: the Deployment that runs warmpool serve.
// Requires: node selection, or a taint that it does not tolerate, that keeps its pods off the nodes of every pool.
// Why: there a pod of warmpool holds a node that Karpenter would remove and takes room that Workspaces are promised; and
// warmpool goes down with nodes whose placeholders no one can then change.
var webhookNodes = &Rule{
	ID:       "webhook-nodes",
	Summary:  "warmpool's own pods cannot start on the nodes of a pool.",
	Fix:      "Exclude the pool in the required node affinity of warmpool's Deployment (manifests/base/warmpool/deployment.yaml).",
	Subject:  Server,
	Severity: SeverityWarning,
	audit:    auditServerNodes,
}

func auditServerNodes(a *Audit) {
	a.unread("Deployments", a.facts.Deployments)
	for _, d := range a.facts.Deployments.All() {
		if !IsServer(d) {
			continue
		}
		for _, pool := range a.pools.All() {
			if mayStart(&d.Spec.Template.Spec, pool) {
				a.about("Deployment", d.Namespace, d.Name, pool.Config.Name).
					required(templateSpecPath.Child(requiredNodesPath[0], requiredNodesPath[1:]...), "nothing keeps warmpool's pods off the nodes of pool %s (%s)", pool.Config.Name, poolRequirement(pool)).
					withFix("Add to each of the nodeSelectorTerms: {key: %s, operator: NotIn, values: [%s]}.", pool.Requirement.Key, strings.Join(pool.Requirement.Values, ", "))
			}
		}
	}
}

// mayStart tells whether a pod can start on some node of the pool.
func mayStart(spec *corev1.PodSpec, pool *placement.Pool) bool {
	untolerated, _ := pool.Untolerated(spec.Tolerations)
	return len(untolerated) == 0 && !pool.Fit(spec).Conflict && !asksForOtherLabels(spec, pool)
}

// nodeGroup is the label of nodes that an EKS node group made, and not Karpenter.
const nodeGroup = "eks.amazonaws.com/nodegroup"

// asksForOtherLabels tells whether a pod needs a label that the pool's nodes are not known to get, in every term.
func asksForOtherLabels(spec *corev1.PodSpec, pool *placement.Pool) bool {
	other := func(key string) bool {
		known := isProviderLabel(key) && key != nodeGroup || isRuntimeLabel(key)
		return key != pool.Requirement.Key && !known &&
			!slices.ContainsFunc(pool.NodePools, func(np *cluster.NodePool) bool { return mentions(np, key) })
	}
	for key := range spec.NodeSelector {
		if other(key) {
			return true
		}
	}
	required := cluster.RequiredNodes(spec)
	return required != nil && !slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist && other(r.Key)
		})
	})
}
