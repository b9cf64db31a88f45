package placement

import (
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

const (
	requiredTerms = "requiredDuringSchedulingIgnoredDuringExecution"
	termsPointer  = "/affinity/nodeAffinity/" + requiredTerms + "/nodeSelectorTerms"
)

func isEmpty(term *corev1.NodeSelectorTerm) bool {
	return len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0
}

// Require keeps the pod in the pool: it ANDs the pool's requirement into every term that could be met outside,
// or adds the one term. Nothing happens to a pod in conflict. spec is replaced part by part, never written through;
// pointer is the JSON pointer of spec.
func (p *Pool) Require(spec *corev1.PodSpec, pointer string, patch *Patch) {
	fit := p.Fit(spec)
	switch {
	case fit.Conflict || fit.Pinned:
	case fit.Unrestricted:
		p.requireNew(spec, pointer, patch)
	case len(fit.Loose) > 0:
		spec.Affinity = spec.Affinity.DeepCopy()
		terms := cluster.RequiredNodes(spec).NodeSelectorTerms
		for _, i := range fit.Loose {
			requirement := *p.Requirement.DeepCopy()
			expressions := Index(pointer+termsPointer, i) + "/matchExpressions"
			if len(terms[i].MatchExpressions) == 0 {
				patch.Add(expressions, []corev1.NodeSelectorRequirement{requirement})
			} else {
				patch.Add(expressions+"/-", requirement)
			}
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, requirement)
		}
	}
}

// requireNew adds the first required term below the deepest parent that is there.
func (p *Pool) requireNew(spec *corev1.PodSpec, pointer string, patch *Patch) {
	selector := func() *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{*p.Requirement.DeepCopy()}},
		}}
	}
	switch {
	case spec.Affinity == nil:
		patch.Add(pointer+"/affinity", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector()}})
	case spec.Affinity.NodeAffinity == nil:
		patch.Add(pointer+"/affinity/nodeAffinity", &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector()})
	default:
		patch.Add(pointer+"/affinity/nodeAffinity/"+requiredTerms, selector())
	}
	affinity := spec.Affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = selector()
	spec.Affinity = affinity
}
