package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools of all providers, HyperPod among them, that say something of karpenter.sh/capacity-type.
// Requires: what they say leaves a capacity type, and not Spot.
// Why: the provider takes a Spot node back at any time, warm or not, so placeholders there promise nothing. That may be
// what is wanted: it costs less. Where no type is left, no node can be started.
var nodePoolCapacityType = &Rule{
	ID:       "nodepool-capacity-type",
	Summary:  "The NodePool does not ask for Spot capacity: a Spot node can be taken back at any time, so its placeholders promise nothing.",
	Fix:      "Set the requirement {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, or keep Spot for what it costs and do not count on its warm nodes.",
	Subject:  NodePool,
	Severity: SeverityInfo,
	audit:    func(a *Audit) { a.eachNodePool(judgeCapacityType) },
}

const spot = "spot"

func judgeCapacityType(np poolNodePool) {
	if !mentions(np.NodePool, capacityType) {
		return
	}
	path := field.NewPath("spec", "template", "metadata", "labels").Key(capacityType)
	if i := requirementOn(np.NodePool, capacityType); i >= 0 {
		path = field.NewPath("spec", "template", "spec", "requirements").Index(i)
	}
	types := slices.DeleteFunc([]string{"on-demand", "reserved", spot}, func(t string) bool {
		can, _ := placement.Grants(np.NodePool, capacityType, t)
		return !can
	})
	const promise = "Spot nodes, which can be taken back at any time: placeholders there promise nothing"
	switch {
	case len(types) == 0:
		np.invalid(path, "none", "the requirements leave none of the capacity types on-demand, reserved and spot: no node can be started").
			withFix("Set the requirement {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}.").milder(SeverityWarning)
	case !slices.Contains(types, spot):
	case len(types) == 1:
		np.invalid(path, spot, "all nodes are %s", promise)
	default:
		np.invalid(path, strings.Join(types, ", "), "some nodes may be %s", promise)
	}
}
