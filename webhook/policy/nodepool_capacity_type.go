package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools of all providers, HyperPod among them, that say something of karpenter.sh/capacity-type.
// Requires: what they say leaves a capacity type, and not Spot.
// Why: the provider takes a Spot node back at any time, warm or not, so placeholders there promise nothing. That may be
// what is wanted: it costs less. Where no type is left, no node can be started.
var nodePoolCapacityType = &Rule{
	ID:        "nodepool-capacity-type",
	Summary:   "The NodePool does not ask for Spot capacity: a Spot node can be taken back at any time, so its placeholders promise nothing.",
	Fix:       "Set the requirement {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, or keep Spot for what it costs and do not count on its warm nodes.",
	Subject:   NodePool,
	Action:    config.Audit,
	Severity:  SeverityInfo,
	AuditOnly: true,
	around:    checkCapacityTypes,
}

const (
	capacityType = "karpenter.sh/capacity-type"
	spot         = "spot"
)

// capacityTypes are those that Karpenter knows.
var capacityTypes = []string{"on-demand", "reserved", spot}

func checkCapacityTypes(a *Audit) []Finding {
	return a.eachNodePool(func(np poolNodePool) []Finding {
		if !mentions(np.NodePool, capacityType) {
			return nil
		}
		path := field.NewPath("spec", "template", "metadata", "labels").Key(capacityType)
		if i := slices.IndexFunc(np.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == capacityType }); i >= 0 {
			path = field.NewPath("spec", "template", "spec", "requirements").Index(i)
		}
		types := slices.DeleteFunc(slices.Clone(capacityTypes), func(t string) bool {
			can, _ := placement.Grants(np.NodePool, capacityType, t)
			return !can
		})
		switch {
		case len(types) == 0:
			return []Finding{invalid(path, "none", "the requirements leave none of the capacity types on-demand, reserved and spot: no node can be started").
				withFix("Set the requirement {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}.").milder(SeverityWarning)}
		case !slices.Contains(types, spot):
			return nil
		case len(types) == 1:
			return []Finding{invalid(path, spot, "every node is a Spot node, which can be taken back at any time: placeholders there promise nothing")}
		default:
			return []Finding{invalid(path, strings.Join(types, ", "), "some nodes may be Spot nodes, which can be taken back at any time: placeholders there promise nothing")}
		}
	})
}
