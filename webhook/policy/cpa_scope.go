package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders that have a pool.
// Requires: --nodelabels that select the pool's nodes, all of them and no others.
// Why: without them CPA counts every node of the cluster, and the pool grows with what has nothing to do with it.
var cpaScope = &Rule{
	ID:        "cpa-scope",
	Summary:   "CPA's --nodelabels restrict counting to the pool's nodes: without them the pool grows with every node of the cluster.",
	Fix:       "Set --nodelabels to the pool's label.",
	Subject:   ProportionalScaler,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around: func(a *Audit) []Finding {
		return a.eachAutoscaler(func(s *autoscaler) []Finding { return checkCPAScope(a, s) })
	},
}

func checkCPAScope(a *Audit, s *autoscaler) []Finding {
	text := s.flags["nodelabels"]
	selector, err := labels.Parse(text)
	if err != nil || s.pool == nil || a.countsInstead(s) != nil {
		return nil // cpa-config or cpa-target speak
	}
	if strings.Contains(text, "$(") {
		return []Finding{notVerified(s.args, "the value of a variable in --nodelabels")}
	}
	flag := "--nodelabels=" + nodeLabelsOf(s.pool)
	if selector.Empty() {
		return []Finding{required(s.args, a.census(s, selector).unrestricted(s.pool)+"; add "+flag).
			withFix("Add " + flag + " to CPA's arguments.")}
	}
	message, known := a.scopeFault(s, selector)
	switch {
	case !known:
		return []Finding{notVerified(s.args, fmt.Sprintf("no node of pool %s tells whether it has the labels %s", s.poolName(), clip(text)))}
	case message == "":
		return nil
	}
	return []Finding{invalid(s.args, "--nodelabels="+clip(text), message).withFix("Set " + flag + " in CPA's arguments.")}
}

// scopeFault says which nodes a selector counts too many or too few: by the pool's label, then by nodes, then, where the
// pool has none, by what the NodePools give to theirs. It is not known where none of them tells.
func (a *Audit) scopeFault(s *autoscaler, selector labels.Selector) (message string, known bool) {
	pool := s.pool
	values := selectedValues(selector, pool)
	missed := slices.DeleteFunc(slices.Clone(pool.Requirement.Values), func(value string) bool { return slices.Contains(values, value) })
	c := a.census(s, selector)
	ours, others := a.nodePoolsSelected(pool, selector)
	switch {
	case len(values) == 0:
		return fmt.Sprintf("counts no node of pool %s: theirs have %s=%s", s.poolName(), pool.Requirement.Key, strings.Join(pool.Requirement.Values, " or ")), true
	case len(missed) > 0:
		return fmt.Sprintf("does not count the pool's nodes with %s=%s", pool.Requirement.Key, strings.Join(missed, " or ")), true
	case c.counted > c.inside:
		return fmt.Sprintf("counts %d nodes, %d of them not of pool %s", c.counted, c.counted-c.inside, s.poolName()), true
	case c.inside < c.pool:
		return fmt.Sprintf("counts %d of the %d nodes of pool %s", c.inside, c.pool, s.poolName()), true
	case len(others) > 0 && !asksFor(selector, pool.Requirement.Key):
		return fmt.Sprintf("counts nodes of NodePool %s too, which is not of pool %s", strings.Join(others, ", "), s.poolName()), true
	}
	return "", c.pool > 0 || len(ours) > 0 || asksOnlyFor(selector, pool.Requirement.Key)
}

// census counts the nodes that CPA counts: of all, those that the selector selects, those of the pool, and those of both.
type census struct {
	known                      bool
	all, counted, pool, inside int
}

func (a *Audit) census(s *autoscaler, selector labels.Selector) census {
	c := census{known: a.facts.Nodes.Known()}
	for _, node := range a.facts.Nodes.All() {
		if !s.counts(node) {
			continue
		}
		c.all++
		value, labelled := node.Labels[s.pool.Requirement.Key]
		inPool, selected := labelled && slices.Contains(s.pool.Requirement.Values, value), selector.Matches(labels.Set(node.Labels))
		if selected {
			c.counted++
		}
		if inPool {
			c.pool++
		}
		if inPool && selected {
			c.inside++
		}
	}
	return c
}

func (c census) unrestricted(pool *placement.Pool) string {
	if !c.known || c.all == 0 {
		return "counts all nodes, not pool " + pool.Config.Name
	}
	return fmt.Sprintf("counts all %d nodes, not pool %s, which has %d", c.all, pool.Config.Name, c.pool)
}

// counts tells whether CPA counts a node that its labels select. Without any Ready condition, as in a manifest, it does.
func (s *autoscaler) counts(node *corev1.Node) bool {
	if node.Spec.Unschedulable && (s.params.autoscalerParams == nil || !s.params.IncludeUnschedulable) {
		return false
	}
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

// nodePoolsSelected are the NodePools whose nodes the selector selects, as far as they say: those of the pool, and others.
func (a *Audit) nodePoolsSelected(pool *placement.Pool, selector labels.Selector) (ours, others []string) {
	for name, np := range a.facts.NodePools.All() {
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

// selectedValues are the values of the pool's label that the selector does not exclude.
func selectedValues(selector labels.Selector, pool *placement.Pool) []string {
	requirements, _ := selector.Requirements()
	return slices.DeleteFunc(slices.Clone(pool.Requirement.Values), func(value string) bool {
		return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
			return r.Key() == pool.Requirement.Key && !r.Matches(labels.Set{r.Key(): value})
		})
	})
}

// asksFor tells whether the selector asks for values of the label.
func asksFor(selector labels.Selector, key string) bool {
	requirements, _ := selector.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == key && r.Values().Len() > 0 && !r.Matches(labels.Set{})
	})
}

func asksOnlyFor(selector labels.Selector, key string) bool {
	requirements, _ := selector.Requirements()
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != key })
}

// nodeLabelsOf is the value of --nodelabels that selects the pool's nodes.
func nodeLabelsOf(pool *placement.Pool) string {
	key, values := pool.Requirement.Key, pool.Requirement.Values
	if len(values) == 1 {
		return key + "=" + values[0]
	}
	return key + " in (" + strings.Join(slices.Sorted(slices.Values(values)), ",") + ")"
}
