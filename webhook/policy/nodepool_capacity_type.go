package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools with a HyperPod node class.
// Requires: what they say of karpenter.sh/capacity-type leaves on-demand, and nothing else.
// Why: HyperPod has on-demand only. Other types start no node, and where they are listed people count on prices that
// they do not get.
var nodePoolCapacityType = &Rule{
	ID:        "nodepool-capacity-type",
	Summary:   "NodePools with a HyperPod node class ask for on-demand capacity only: there is no other.",
	Fix:       "Set the requirement {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}.",
	Subject:   NodePool,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkCapacityTypes,
}

const (
	hyperPodGroup = "karpenter.sagemaker.amazonaws.com"
	capacityType  = "karpenter.sh/capacity-type"
	onDemand      = "on-demand"
)

func checkCapacityTypes(a *Audit) []Finding {
	return a.eachNodePool(func(np poolNodePool) []Finding {
		if np.NodeClass.Group != hyperPodGroup || !mentions(np.NodePool, capacityType) {
			return nil
		}
		types := []string{onDemand, "spot", "reserved"}
		for _, r := range np.Requirements {
			if r.Key == capacityType && r.Operator == corev1.NodeSelectorOpIn {
				types = append(types, r.Values...)
			}
		}
		slices.Sort(types)
		types = slices.DeleteFunc(slices.Compact(types), func(t string) bool {
			can, _ := placement.Grants(np.NodePool, capacityType, t)
			return !can
		})
		if slices.Equal(types, []string{onDemand}) {
			return nil
		}
		path := field.NewPath("spec", "template", "metadata", "labels").Key(capacityType)
		if i := slices.IndexFunc(np.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == capacityType }); i >= 0 {
			path = field.NewPath("spec", "template", "spec", "requirements").Index(i)
		}
		list := clip(strings.Join(types, ", "))
		others := slices.DeleteFunc(types, func(t string) bool { return t == onDemand })
		switch {
		case len(types) == 0:
			return []Finding{invalid(path, "none", "the requirements leave no capacity type, and HyperPod offers on-demand: no node can be started")}
		case len(others) == len(types):
			return []Finding{invalid(path, list, "HyperPod offers on-demand only: no node can be started")}
		default:
			return []Finding{invalid(path, list, "HyperPod offers on-demand only: there is never any "+clip(strings.Join(others, " or ")))}
		}
	})
}
