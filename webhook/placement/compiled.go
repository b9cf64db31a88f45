package placement

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// AtLeast is an operator of NodeLabels: of the values that are left there must be so many as the first of Values says, or one of
// the others, which nodes have.
const AtLeast corev1.NodeSelectorOperator = "AtLeast"

// NodeLabels are what each of the pool's NodePools, or value of its label, says about the labels of its nodes, by
// NormalKey, in as few requirements as say it. Operators are Karpenter's and AtLeast.
// They may not be changed.
func (p *Pool) NodeLabels() []map[string][]corev1.NodeSelectorRequirement {
	labels := make([]map[string][]corev1.NodeSelectorRequirement, 0, len(p.offers))
	for _, o := range p.offers {
		byKey := make(map[string][]corev1.NodeSelectorRequirement, len(o.byKey))
		for key, own := range o.byKey {
			byKey[key] = own.requirements(key)
			if atLeast := o.minValues[key]; atLeast > 0 {
				enough := slices.Concat([]string{strconv.Itoa(atLeast)}, o.seen.ByKey[key].Values)
				byKey[key] = append(byKey[key], corev1.NodeSelectorRequirement{Key: key, Operator: AtLeast, Values: enough})
			}
		}
		labels = append(labels, byKey)
	}
	return labels
}

// Tolerations are what Tolerate adds, one for each of Taints in their order; several may be the same.
func (p *Pool) Tolerations() []corev1.Toleration { return slices.Clone(p.tolerations) }

// AcceleratorGlobs are the globs (path.Match) over the resources that count as accelerators: those of the known vendors and
// those of all pools.
func (p *Pools) AcceleratorGlobs() []string { return slices.Clone(p.acceleratorGlobs) }

// UsualAccelerators are the accelerators that pods mostly ask for, sorted: one of each known vendor, for which the taint is
// named, and those that pools name without a wildcard.
func (p *Pools) UsualAccelerators() []string {
	var names []string
	for _, v := range vendors {
		names = append(names, v.taint)
	}
	for _, glob := range p.acceleratorGlobs {
		if !strings.ContainsAny(glob, wildcards) && strings.Contains(glob, "/") && len(validation.IsQualifiedName(glob)) == 0 {
			names = append(names, glob)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
