package placement

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// offer is what one NodePool (or one value of a node label) says about the labels of its nodes.
// A key that it does not mention is open: nothing is concluded from it.
type offer struct {
	byKey map[string][]corev1.NodeSelectorRequirement
	keys  []string // of byKey, sorted
}

func offerOf(np *cluster.NodePool) offer {
	o := offer{byKey: map[string][]corev1.NodeSelectorRequirement{}}
	for key, value := range np.Labels {
		o.byKey[key] = append(o.byKey[key], in(key, value))
	}
	for _, r := range np.Requirements {
		o.byKey[r.Key] = append(o.byKey[r.Key], r)
	}
	o.byKey[config.NodePoolLabel] = []corev1.NodeSelectorRequirement{in(config.NodePoolLabel, np.Name)}
	o.keys = slices.Sorted(maps.Keys(o.byKey))
	return o
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// within are the offer's nodes that have the label of an In requirement with one of its values: a NodePool may have others
// too, which are no pool's or another's.
func (o offer) within(r corev1.NodeSelectorRequirement) offer {
	for i := range o.byKey[r.Key] {
		if own := &o.byKey[r.Key][i]; own.Operator == corev1.NodeSelectorOpIn {
			own.Values = slices.DeleteFunc(slices.Clone(own.Values), func(value string) bool { return !slices.Contains(r.Values, value) })
		}
	}
	return o
}

// sets tells whether the offer's nodes get the label of an In requirement with one of its values.
func (o offer) sets(r corev1.NodeSelectorRequirement) bool {
	own, ok := o.byKey[r.Key]
	return ok && slices.ContainsFunc(own, func(have corev1.NodeSelectorRequirement) bool { return have.Operator == corev1.NodeSelectorOpIn }) &&
		satisfiable(r.Key, own, []corev1.NodeSelectorRequirement{r})
}

// Grants tells whether nodes of the NodePool can carry the label with the value because the NodePool mentions it, and
// whether it lists the value rather than leave it to the pods that ask for one.
func Grants(np *cluster.NodePool, key, value string) (can, lists bool) {
	o, asked := offerOf(np), in(key, value)
	own, mentioned := o.byKey[key]
	return mentioned && satisfiable(key, own, []corev1.NodeSelectorRequirement{asked}), o.sets(asked)
}

// admits tells whether a node of the offer can satisfy all requirements; if not, key is the first label by name that
// excludes it. It costs the offer's labels times the requirements, however many there are of one label.
func (o offer) admits(requirements []corev1.NodeSelectorRequirement) (key string, ok bool) {
	for _, key := range o.keys {
		asked := slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == key })
		if asked && !satisfiable(key, o.byKey[key], requirements) {
			return key, false
		}
	}
	return "", true
}

// maxComparisons bounds the work on one label; where there would be more, nothing is concluded.
const maxComparisons = 1 << 22

// satisfiable tells whether one label can satisfy all requirements on its key in both lists. Where none of them lists
// its values, the answer is yes unless presence itself is contradicted: nothing is denied on a guess.
func satisfiable(key string, own, asked []corev1.NodeSelectorRequirement) bool {
	some := func(is func(*corev1.NodeSelectorRequirement) bool) *corev1.NodeSelectorRequirement {
		for _, list := range [2][]corev1.NodeSelectorRequirement{own, asked} {
			for i := range list {
				if list[i].Key == key && is(&list[i]) {
					return &list[i]
				}
			}
		}
		return nil
	}
	absent := some(func(r *corev1.NodeSelectorRequirement) bool { return r.Operator == corev1.NodeSelectorOpDoesNotExist })
	if absent != nil {
		return some(func(r *corev1.NodeSelectorRequirement) bool {
			return r.Operator != corev1.NodeSelectorOpDoesNotExist && r.Operator != corev1.NodeSelectorOpNotIn
		}) == nil
	}
	listed := some(func(r *corev1.NodeSelectorRequirement) bool { return r.Operator == corev1.NodeSelectorOpIn })
	if listed == nil || len(listed.Values)*(len(own)+len(asked)) > maxComparisons {
		return true
	}
	return slices.ContainsFunc(listed.Values, func(value string) bool {
		return some(func(r *corev1.NodeSelectorRequirement) bool { return !holds(r, value) }) == nil
	})
}

// holds tells whether a label that is present with the value satisfies the requirement. Operators of a later
// Kubernetes count as satisfied.
func holds(r *corev1.NodeSelectorRequirement, value string) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpDoesNotExist:
		return false
	case corev1.NodeSelectorOpGt:
		return compareInt(r.Values, value, func(have, want int64) bool { return have > want })
	case corev1.NodeSelectorOpLt:
		return compareInt(r.Values, value, func(have, want int64) bool { return have < want })
	case corev1.NodeSelectorOpExists:
		return true
	default:
		return true
	}
}

func compareInt(wants []string, value string, cmp func(have, want int64) bool) bool {
	if len(wants) != 1 {
		return false
	}
	want, err := strconv.ParseInt(wants[0], 10, 64)
	if err != nil {
		return false
	}
	have, err := strconv.ParseInt(value, 10, 64)
	return err == nil && cmp(have, want)
}

// InstanceTypes are the instance types that the pool's NodePools list, sorted. all is false when one of them leaves
// the types open.
func (p *Pool) InstanceTypes() (types []string, all bool) {
	all = true
	for _, o := range p.offers {
		i := slices.IndexFunc(o.byKey[corev1.LabelInstanceTypeStable], func(r corev1.NodeSelectorRequirement) bool { return r.Operator == corev1.NodeSelectorOpIn })
		if i < 0 {
			all = false
			continue
		}
		types = append(types, o.byKey[corev1.LabelInstanceTypeStable][i].Values...)
	}
	slices.Sort(types)
	return slices.Compact(types), all
}

// UnofferedInstanceTypes are the instance types that the spec asks for and that no NodePool of the pool lists, sorted.
func (p *Pool) UnofferedInstanceTypes(spec *corev1.PodSpec) []string {
	offered, all := p.InstanceTypes()
	if !all {
		return nil
	}
	var strange []string
	for _, r := range nodeRequirements(spec) {
		if r.Key == corev1.LabelInstanceTypeStable && r.Operator == corev1.NodeSelectorOpIn {
			strange = append(strange, slices.DeleteFunc(slices.Clone(r.Values), func(t string) bool { return slices.Contains(offered, t) })...)
		}
	}
	slices.Sort(strange)
	return slices.Compact(strange)
}

// AdmittedInstanceTypes are the instance types that the pool's NodePools list or the spec names and that the spec's
// node selection lets a pod onto, sorted.
func (p *Pool) AdmittedInstanceTypes(spec *corev1.PodSpec) []string {
	types, _ := p.InstanceTypes()
	for _, r := range nodeRequirements(spec) {
		if r.Key == corev1.LabelInstanceTypeStable && r.Operator == corev1.NodeSelectorOpIn {
			types = append(types, r.Values...)
		}
	}
	slices.Sort(types)
	return slices.DeleteFunc(slices.Compact(types), func(t string) bool { return !p.admitsInstanceType(spec, t) })
}

func (p *Pool) admitsInstanceType(spec *corev1.PodSpec, instanceType string) bool {
	selector := append(p.selector(spec), in(corev1.LabelInstanceTypeStable, instanceType))
	terms := requiredNodeSelectorTerms(spec)
	if terms == nil {
		_, ok := p.admits(selector)
		return ok
	}
	return slices.ContainsFunc(*terms, func(term corev1.NodeSelectorTerm) bool {
		_, ok := p.admits(both(selector, term.MatchExpressions))
		return ok && !isEmpty(&term)
	})
}
