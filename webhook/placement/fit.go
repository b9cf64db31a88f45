package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
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
	// Key is the label that excludes the pool, by its NormalKey, or metadata.name; empty for a term that matches nothing.
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
// labels that neither the pool's NodePools nor its nodes decide exclude nothing.
func (p *Pool) Fit(spec *corev1.PodSpec) Fit {
	var fit Fit
	selector, offers, key := p.selected(spec)
	if len(offers) == 0 && len(p.offers) > 0 {
		return Fit{Conflict: true, Excluded: []Exclusion{{Term: -1, Key: key}}}
	}
	value, pinned := spec.NodeSelector[p.Requirement.Key]
	fit.Pinned = pinned && slices.Contains(p.Requirement.Values, value)

	required := cluster.RequiredNodes(spec)
	if required == nil {
		fit.Unrestricted = true
		return fit
	}
	terms := required.NodeSelectorTerms
	var dead []Exclusion
	for i := range terms {
		term := &terms[i]
		admitting, key := p.admitting(offers, labels(term.MatchExpressions, selector), term.MatchFields)
		pinned := fit.Pinned || slices.ContainsFunc(term.MatchExpressions, p.pins)
		switch excluded := isEmpty(term) || len(admitting) == 0 && len(offers) > 0; {
		case excluded && pinned: // it can be met nowhere
			dead = append(dead, Exclusion{Term: i, Key: key})
		case excluded:
			fit.Excluded = append(fit.Excluded, Exclusion{Term: i, Key: key})
		case !pinned:
			fit.Loose = append(fit.Loose, i)
		}
	}
	if len(terms) == 0 { // as good as an empty term; the API server refuses it
		dead = []Exclusion{{}}
	}
	if len(fit.Excluded)+len(dead) >= len(terms) {
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

// selected reads the nodeSelector. offers are those whose nodes it admits; if there is none, key is a label that excludes them.
func (p *Pool) selected(spec *corev1.PodSpec) (selector []label, offers []*offer, key string) {
	selector = labels(selectorRequirements(spec.NodeSelector), nil)
	offers, key = p.admitting(p.offers, selector, nil)
	return selector, offers, key
}

// admitting are the offers of which a node can be as asked. If there is none, key is the first label by name that excludes the
// first of them.
func (p *Pool) admitting(offers []*offer, asked []label, fields []corev1.NodeSelectorRequirement) (admitting []*offer, key string) {
	for i := range asked {
		if asked[i].never || asked[i].key == corev1.LabelHostname && p.elsewhere(asked[i].values, p.nodes.ByHostname) {
			return nil, asked[i].key
		}
	}
	for i := range fields {
		if named := anything().read(fields[i : i+1]); fields[i].Key == metav1.ObjectNameField && p.elsewhere(named, p.byName) {
			return nil, metav1.ObjectNameField
		}
	}
	if len(asked) == 0 {
		return offers, ""
	}
	for _, o := range offers {
		i := slices.IndexFunc(asked, func(l label) bool { return o.excludes(&l) })
		if i < 0 {
			admitting = append(admitting, o)
		} else if key == "" {
			key = asked[i].key
		}
	}
	return admitting, key
}

// elsewhere tells whether only nodes are named that are known and are none of the pool's.
func (p *Pool) elsewhere(named values, find func(name string) []*corev1.Node) bool {
	if named.others || len(named.listed) == 0 {
		return false
	}
	return !slices.ContainsFunc(named.listed, func(name string) bool {
		found := find(name)
		return len(found) == 0 || slices.ContainsFunc(found, p.HasNode)
	})
}

func (p *Pool) byName(name string) []*corev1.Node {
	if node := p.nodes.Node(name); node != nil {
		return []*corev1.Node{node}
	}
	return nil
}

// way is one way to meet the node selection in the pool: the nodeSelector, together with a term where there are any.
type way struct {
	term            int // -1: there are none
	offers          []*offer
	selector, asked []label
}

// ways are those that some node of the pool allows.
func (p *Pool) ways(spec *corev1.PodSpec) []way {
	selector, offers, _ := p.selected(spec)
	if len(offers) == 0 {
		return nil
	}
	required := cluster.RequiredNodes(spec)
	if required == nil {
		return []way{{-1, offers, selector, nil}}
	}
	terms := required.NodeSelectorTerms
	var ways []way
	for i := range terms {
		term := &terms[i]
		asked := labels(term.MatchExpressions, selector)
		if admitting, _ := p.admitting(offers, asked, term.MatchFields); len(admitting) > 0 && !isEmpty(term) {
			ways = append(ways, way{i, admitting, selector, asked})
		}
	}
	return ways
}

// allows tells whether the label may have the value.
func (w *way) allows(key, value string) bool {
	for _, asked := range [][]label{w.selector, w.asked} {
		if i, found := find(asked, key); found && !asked[i].allow(value) {
			return false
		}
	}
	return true
}
