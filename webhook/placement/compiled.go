package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
