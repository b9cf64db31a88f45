package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: pools that Karpenter runs and that go by a node label of their own.
// Requires: some NodePool gives that label, with each of the values, by its template's labels or its requirements.
// Why: pods that ask for a label which Karpenter cannot give to a new node stay Pending, also where old nodes carry it.
var nodePoolLabel = &Rule{
	ID:       "nodepool-label",
	Summary:  "Some NodePool gives the pool's label, with each value, to its nodes: Karpenter starts no node for other labels.",
	Fix:      "Add the label to spec.template.metadata.labels of the pool's NodePool, or correct nodeLabel in the configuration.",
	Subject:  WarmPool,
	Severity: SeverityError,
	audit:    auditNodePoolLabels,
}

func auditNodePoolLabels(a *Audit) {
	for i, pool := range a.pools.All() {
		if pool.Config.NodeLabel == nil || pool.Config.Autoscaler != config.Karpenter {
			continue
		}
		path, key := field.NewPath("pools").Index(i).Child("nodeLabel"), pool.Requirement.Key
		about := a.about(config.Kind, "", "", pool.Config.Name)
		switch {
		case isRuntimeLabel(key):
			about.invalid(path.Child("key"), key, "restricted runtime label: nodes get it when they run, so Karpenter starts none for it; use %s", config.NodePoolLabel).
				withFix("Use nodePools instead of nodeLabel: pods then ask for " + config.NodePoolLabel + ".")
		case !a.facts.NodePools.Known():
			about.notVerified(path, "NodePools: %s", a.facts.NodePools.Reason())
		default:
			for i, value := range pool.Requirement.Values {
				judgeNodeLabel(a, about, path.Child("values").Index(i), key, value)
			}
		}
	}
}

// judgeNodeLabel looks for NodePools that give the label with the value. One that lists it settles the matter.
func judgeNodeLabel(a *Audit, about about, path *field.Path, key, value string) {
	var open []*cluster.NodePool
	for _, np := range a.facts.NodePools.All() {
		can, lists := placement.Grants(np, key, value)
		if lists || isProviderLabel(key) && !mentions(np, key) {
			return
		}
		if can {
			open = append(open, np)
		}
	}
	for _, np := range open {
		requirement := field.NewPath("spec", "template", "spec", "requirements").Index(requirementOn(np, key))
		a.about("NodePool", "", np.Name, about.pool).
			invalid(requirement, key, "lists no values: nodes get %s=%s only when a pod asks for it, and the NodePool serves other values too", key, value).
			withFix("Nothing has to be done; operator In with values [%s] makes the NodePool the pool's own.", value).milder(SeverityInfo)
	}
	unreadable := a.facts.NodePools.AllMalformed()
	switch {
	case len(open) > 0:
	case len(unreadable) > 0:
		about.notVerified(path, "no readable NodePool offers %s=%s, and these cannot be read: %s", key, value, clipped(unreadable))
	default:
		about.invalid(path, value, "no NodePool offers %s=%s: pods stay Pending", key, value).
			orElsewhere(a.facts.NodePools, "no NodePool among these files offers %s=%s: where none does, pods stay Pending", key, value)
	}
}
