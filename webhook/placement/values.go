package placement

import (
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Operators of Karpenter that Kubernetes' node affinity does not have.
const (
	opGte corev1.NodeSelectorOperator = "Gte"
	opLte corev1.NodeSelectorOperator = "Lte"
)

// maxValues bounds what is sorted of one label; where there is more, nothing is concluded.
const maxValues = 1 << 16

// values are what one label may be by some requirements, read as Karpenter does (sigs.k8s.io/karpenter/pkg/scheduling,
// which is too heavy for the way of a request; a test holds the two together).
type values struct {
	// others tells that listed are the values that the label may not have, rather than those that it may have.
	others bool
	listed []string // sorted
	// bounded tells that there are bounds, which only numbers keep, both included.
	bounded  bool
	min, max int
	// present tells that some requirement is not met by a node without the label.
	present bool
	// never tells that no node can meet the requirements, by the scheduler's reading.
	never bool
}

// anything is what a label may be without requirements.
func anything() values { return values{others: true, min: math.MinInt, max: math.MaxInt} }

// read joins requirements on one label to what it may be already.
func (v values) read(requirements []corev1.NodeSelectorRequirement) values {
	if crowded(requirements) {
		return v
	}
	not, nothing := v.take(requirements)
	if nothing || v.bounded && v.min > v.max {
		v.others, v.listed = false, nil
	}
	not = sorted(not)
	if v.others {
		v.listed = slices.DeleteFunc(not, func(value string) bool { return !v.within(value) })
		return v
	}
	if len(not) > 0 || v.bounded {
		v.listed = slices.DeleteFunc(slices.Clone(v.listed), func(value string) bool { return contains(not, value) || !v.within(value) })
	}
	v.bounded, v.min, v.max = false, math.MinInt, math.MaxInt
	v.never = v.never || v.present && len(v.listed) == 0
	return v
}

// take takes each requirement in, but for the values that the label may not have, which it returns. nothing tells that no value
// is left.
func (v *values) take(requirements []corev1.NodeSelectorRequirement) (not []string, nothing bool) {
	for i := range requirements {
		r := &requirements[i]
		v.present = v.present || r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist
		switch r.Operator {
		case corev1.NodeSelectorOpIn:
			v.only(r.Values)
		case corev1.NodeSelectorOpNotIn:
			not = append(not, r.Values...)
		case corev1.NodeSelectorOpDoesNotExist:
			nothing = true
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, opGte, opLte:
			nothing = v.bound(r) || nothing
		case corev1.NodeSelectorOpExists:
		default: // of a later Kubernetes
		}
	}
	return not, nothing
}

// only leaves those values that are in the list.
func (v *values) only(list []string) {
	list = sorted(list)
	if !v.others {
		list = slices.DeleteFunc(list, func(value string) bool { return !contains(v.listed, value) })
	}
	v.others, v.listed = false, list
}

// bound takes a bound in. It tells whether nothing is left. A bound that is no number is 0 to Karpenter, and to the scheduler
// one that no node keeps.
func (v *values) bound(r *corev1.NodeSelectorRequirement) (nothing bool) {
	if len(r.Values) != 1 {
		v.never = true
		return false
	}
	bound, err := strconv.Atoi(r.Values[0])
	v.never, v.bounded = v.never || err != nil, true
	switch r.Operator {
	case corev1.NodeSelectorOpGt:
		if bound == math.MaxInt {
			return true
		}
		v.min = max(v.min, bound+1)
	case opGte:
		v.min = max(v.min, bound)
	case corev1.NodeSelectorOpLt:
		v.max = min(v.max, bound-1)
	default:
		v.max = min(v.max, bound)
	}
	return false
}

// within tells whether a value keeps the bounds.
func (v *values) within(value string) bool {
	if !v.bounded {
		return true
	}
	number, err := strconv.Atoi(value)
	return err == nil && v.min <= number && number <= v.max
}

// allow tells whether a label that is there may have the value.
func (v *values) allow(value string) bool {
	return contains(v.listed, value) != v.others && v.within(value)
}

// optional tells whether Karpenter takes a node without the label.
func (v *values) optional() bool { return (len(v.listed) > 0) == v.others }

// suits tells whether a label of which the NodePool says v can be as asked.
func (v *values) suits(asked *values) bool {
	// Karpenter reads "more than 5, but not 7" as optional; the scheduler wants the label.
	return v.karpenterSuits(asked) && (v.others || len(v.listed) > 0 || !asked.present)
}

func (v *values) karpenterSuits(asked *values) bool {
	return v.common(asked) != 0 || v.optional() && asked.optional()
}

// common counts the values that both allow; -1 stands for any number.
func (v *values) common(asked *values) int {
	if v.bounded && asked.bounded && max(v.min, asked.min) > min(v.max, asked.max) {
		return 0
	}
	if v.others && asked.others {
		return -1
	}
	few, other := v, asked
	if v.others || !asked.others && len(asked.listed) < len(v.listed) {
		few, other = asked, v
	}
	count := 0
	for _, value := range few.listed {
		if other.allow(value) {
			count++
		}
	}
	return count
}

// requirements say the values in as few requirements as there can be.
func (v *values) requirements(key string) []corev1.NodeSelectorRequirement {
	if !v.others {
		if len(v.listed) == 0 {
			return []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}}
		}
		return []corev1.NodeSelectorRequirement{in(key, v.listed...)}
	}
	var all []corev1.NodeSelectorRequirement
	if len(v.listed) > 0 {
		all = append(all, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: v.listed})
	}
	if v.bounded && v.min > math.MinInt {
		all = append(all, corev1.NodeSelectorRequirement{Key: key, Operator: opGte, Values: []string{strconv.Itoa(v.min)}})
	}
	if v.bounded && v.max < math.MaxInt {
		all = append(all, corev1.NodeSelectorRequirement{Key: key, Operator: opLte, Values: []string{strconv.Itoa(v.max)}})
	}
	if len(all) == 0 {
		all = append(all, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists})
	}
	return all
}

func crowded(requirements []corev1.NodeSelectorRequirement) bool {
	count := 0
	for i := range requirements {
		count += len(requirements[i].Values)
	}
	return count > maxValues
}

// sorted gives a list of its v without duplicates.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func contains(list []string, value string) bool {
	_, found := slices.BinarySearch(list, value)
	return found
}
