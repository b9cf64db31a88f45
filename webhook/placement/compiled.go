package placement

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NodeLabels are what each of the pool's NodePools, or value of its label, says about the labels of its nodes, by key.
// They may not be changed.
func (p *Pool) NodeLabels() []map[string][]corev1.NodeSelectorRequirement {
	labels := make([]map[string][]corev1.NodeSelectorRequirement, 0, len(p.offers))
	for _, o := range p.offers {
		labels = append(labels, maps.Clone(o.byKey))
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
