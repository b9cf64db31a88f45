package cpa

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Counts tells whether CPA counts a node that its labels select.
func (s *Scaler) Counts(node *corev1.Node) bool {
	return cluster.MayBeReady(node) && (!node.Spec.Unschedulable || s.Params != nil && s.IncludeUnschedulable)
}

// OtherNodes is how many nodes CPA counts beside those that placeholders of its targets hold, by their names.
func (s *Scaler) OtherNodes(facts *cluster.Snapshot, selector labels.Selector, held map[string]bool) int {
	others := 0
	for name, node := range facts.Nodes.All() {
		if s.Counts(node) && selector.Matches(labels.Set(node.Labels)) && !held[name] {
			others++
		}
	}
	return others
}

// Census counts the nodes that CPA counts: of all, those that the selector selects, those of the pool, and those of both.
type Census struct{ All, Counted, Pool, Inside int }

// Census of the cluster's nodes, for a CPA with a pool.
func (s *Scaler) Census(facts *cluster.Snapshot, selector labels.Selector) Census {
	var c Census
	for _, node := range facts.Nodes.All() {
		if !s.Counts(node) {
			continue
		}
		c.All++
		inPool, selected := s.Pool.HasNode(node), selector.Matches(labels.Set(node.Labels))
		if selected {
			c.Counted++
		}
		if inPool {
			c.Pool++
		}
		if inPool && selected {
			c.Inside++
		}
	}
	return c
}

// NodePools are the NodePools whose nodes a selector selects, as far as they say: those of the pool, and others.
func NodePools(facts *cluster.Snapshot, pool *placement.Pool, selector labels.Selector) (ours, others []string) {
	for name, np := range facts.NodePools.All() {
		switch {
		case !selector.Matches(nodeLabels(np)):
		case slices.Contains(pool.NodePools, np):
			ours = append(ours, name)
		default:
			others = append(others, name)
		}
	}
	return ours, others
}

// nodeLabels are the labels that all nodes of a NodePool have.
func nodeLabels(np *cluster.NodePool) labels.Set {
	set := labels.Set{config.NodePoolLabel: np.Name}
	for _, r := range np.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			set[r.Key] = r.Values[0]
		}
	}
	maps.Copy(set, np.Labels)
	return set
}

// SelectedValues are the values of the pool's label that the selector does not exclude.
func SelectedValues(selector labels.Selector, pool *placement.Pool) []string {
	requirements, _ := selector.Requirements()
	return slices.DeleteFunc(slices.Clone(pool.Requirement.Values), func(value string) bool {
		return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
			return r.Key() == pool.Requirement.Key && !r.Matches(labels.Set{r.Key(): value})
		})
	})
}

// AsksFor tells whether the selector asks for values of the label.
func AsksFor(selector labels.Selector, key string) bool {
	requirements, _ := selector.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == key && r.Values().Len() > 0 && !r.Matches(labels.Set{})
	})
}

// AsksOnlyFor tells whether the selector is about no other label.
func AsksOnlyFor(selector labels.Selector, key string) bool {
	requirements, _ := selector.Requirements()
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != key })
}

// Selector is the value of --nodelabels that selects the pool's nodes.
func Selector(pool *placement.Pool) string {
	key, values := pool.Requirement.Key, pool.Requirement.Values
	if len(values) == 1 {
		return key + "=" + values[0]
	}
	return key + " in (" + strings.Join(slices.Sorted(slices.Values(values)), ",") + ")"
}
