package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	requiredTerms = "requiredDuringSchedulingIgnoredDuringExecution"
	termsPointer  = "/affinity/nodeAffinity/" + requiredTerms + "/nodeSelectorTerms"
)

// Fit says how a PodSpec's required node selection stands to a pool.
type Fit struct {
	// Pinned: the nodeSelector alone keeps the pod in the pool.
	Pinned bool
	// Unrestricted: there is no required node affinity to add to yet.
	Unrestricted bool
	// Loose are the indices of the terms that could be met outside the pool.
	Loose []int
	// Excluded are the terms that no node of the pool can meet, empty ones (they match nothing) among them; not those
	// that no other node can meet either, unless they are all there is.
	Excluded []Exclusion
	// Conflict: the pod can never run in the pool. Excluded then says why.
	Conflict bool
}

// Exclusion is a part of the node selection that keeps a pod out of a pool.
type Exclusion struct {
	// Term is the index of the nodeSelectorTerm, or -1 for the nodeSelector.
	Term int
	// Key is the label that excludes the pool; empty for a term that matches nothing.
	Key string
}

// Field is the path of the excluding part below the PodSpec.
func (e Exclusion) Field() string {
	if e.Term < 0 {
		return "nodeSelector"
	}
	return fmt.Sprintf("affinity.nodeAffinity.%s.nodeSelectorTerms[%d]", requiredTerms, e.Term)
}

// Fit judges the nodeSelector and every term of the required node affinity against the pool. Requirements on
// labels that the pool's NodePools do not mention, and matchFields, exclude nothing.
func (p *Pool) Fit(spec *corev1.PodSpec) Fit {
	var fit Fit
	selector := p.selector(spec)
	if key, ok := p.admits(selector); !ok {
		return Fit{Conflict: true, Excluded: []Exclusion{{Term: -1, Key: key}}}
	}
	value, pinned := spec.NodeSelector[p.Requirement.Key]
	fit.Pinned = pinned && slices.Contains(p.Requirement.Values, value)

	terms := requiredNodeSelectorTerms(spec)
	if terms == nil {
		fit.Unrestricted = true
		return fit
	}
	var dead []Exclusion
	for i := range *terms {
		term := &(*terms)[i]
		key, ok := p.admits(both(selector, term.MatchExpressions))
		pinned := fit.Pinned || slices.ContainsFunc(term.MatchExpressions, p.pins)
		switch excluded := isEmpty(term) || !ok; {
		case excluded && pinned: // it can be met nowhere
			dead = append(dead, Exclusion{Term: i, Key: key})
		case excluded:
			fit.Excluded = append(fit.Excluded, Exclusion{Term: i, Key: key})
		case !pinned:
			fit.Loose = append(fit.Loose, i)
		}
	}
	if len(*terms) == 0 { // as good as an empty term; the API server refuses it
		dead = []Exclusion{{}}
	}
	if len(fit.Excluded)+len(dead) >= len(*terms) {
		fit.Conflict = true
		fit.Excluded = append(fit.Excluded, dead...)
		slices.SortFunc(fit.Excluded, func(a, b Exclusion) int { return a.Term - b.Term })
	}
	return fit
}

// pins tells whether an expression alone keeps a pod in the pool.
func (p *Pool) pins(r corev1.NodeSelectorRequirement) bool {
	return r.Key == p.Requirement.Key && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) > 0 &&
		!slices.ContainsFunc(r.Values, func(value string) bool { return !slices.Contains(p.Requirement.Values, value) })
}

// admits tells whether some node of the pool can satisfy the requirements; if none, key is a label that excludes it.
func (p *Pool) admits(requirements []corev1.NodeSelectorRequirement) (key string, ok bool) {
	if len(requirements) == 0 {
		return "", true
	}
	for _, o := range p.offers {
		excluding, ok := o.admits(requirements)
		if ok {
			return "", true
		}
		if key == "" {
			key = excluding
		}
	}
	return key, false
}

// selector is the part of the nodeSelector that the pool's NodePools say something about, as requirements by key.
func (p *Pool) selector(spec *corev1.PodSpec) []corev1.NodeSelectorRequirement {
	if len(spec.NodeSelector) == 0 {
		return nil
	}
	var known []corev1.NodeSelectorRequirement
	for _, o := range p.offers {
		for _, key := range o.keys {
			value, asked := spec.NodeSelector[key]
			if asked && !slices.ContainsFunc(known, func(r corev1.NodeSelectorRequirement) bool { return r.Key == key }) {
				known = append(known, in(key, value))
			}
		}
	}
	return known
}

// both joins two lists; neither may be changed afterwards.
func both(a, b []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	if len(a) == 0 {
		return b
	}
	return append(slices.Clip(a), b...)
}

// requiredNodeSelectorTerms is nil when there is no required node affinity.
func requiredNodeSelectorTerms(spec *corev1.PodSpec) *[]corev1.NodeSelectorTerm {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil ||
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

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
		terms := *requiredNodeSelectorTerms(spec)
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
