package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// InstanceTypes are the instance types that the pool's NodePools list, sorted. all is false when one of them leaves
// the types open.
func (p *Pool) InstanceTypes() (types []string, all bool) {
	all = true
	for i := range p.offers {
		own, mentioned := p.offers[i].byKey[corev1.LabelInstanceTypeStable]
		if !mentioned || own.others {
			all = false
			continue
		}
		types = append(types, own.listed...)
	}
	return sorted(types), all
}

// UnofferedInstanceTypes are the instance types that the spec asks for and that no NodePool of the pool lists, sorted.
func (p *Pool) UnofferedInstanceTypes(spec *corev1.PodSpec) []string {
	offered, all := p.InstanceTypes()
	if !all {
		return nil
	}
	return slices.DeleteFunc(namedTypes(spec), func(t string) bool { return contains(offered, t) })
}

// namedTypes are the instance types that the spec mentions anywhere, sorted.
func namedTypes(spec *corev1.PodSpec) []string {
	var types []string
	for _, r := range nodeRequirements(spec) {
		if NormalKey(r.Key) == corev1.LabelInstanceTypeStable && r.Operator == corev1.NodeSelectorOpIn {
			types = append(types, r.Values...)
		}
	}
	return sorted(types)
}

// AdmittedInstanceTypes are the instance types that the pool's NodePools list or the spec names and that the spec's
// node selection lets a pod onto, sorted.
func (p *Pool) AdmittedInstanceTypes(spec *corev1.PodSpec) []string {
	listed, _ := p.InstanceTypes()
	types := sorted(append(listed, namedTypes(spec)...))
	admitted := make([]bool, len(types))
	for _, way := range p.ways(spec) {
		for _, o := range way.offers {
			for i, t := range types {
				admitted[i] = admitted[i] || o.hasType(t) && way.allows(corev1.LabelInstanceTypeStable, t)
			}
		}
	}
	i := -1
	return slices.DeleteFunc(types, func(string) bool { i++; return !admitted[i] })
}

func (o *offer) hasType(t string) bool {
	own, mentioned := o.byKey[corev1.LabelInstanceTypeStable]
	return !mentioned || own.allow(t)
}
