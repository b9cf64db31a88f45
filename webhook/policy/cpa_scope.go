package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cpa"
	"warmpool.sh/webhook/placement"
)

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders that have a pool.
// Requires: --nodelabels that select the pool's nodes, all of them and no others.
// Why: without them CPA counts every node of the cluster, and the pool grows with what has nothing to do with it.
var cpaScope = &Rule{
	ID:       "cpa-scope",
	Summary:  "CPA's --nodelabels restrict counting to the pool's nodes: without them the pool grows with every node of the cluster.",
	Fix:      "Set --nodelabels to the pool's label.",
	Subject:  ProportionalScaler,
	Severity: SeverityWarning,
	audit:    func(a *Audit) { a.eachCPA(judgeScope) },
}

func judgeScope(a *Audit, s scaler) {
	value := s.Flags["nodelabels"]
	selector, err := labels.Parse(value)
	if err != nil || s.Pool == nil || a.countsInstead(s) != nil {
		return // cpa-config or cpa-target speak
	}
	if strings.Contains(value, "$(") {
		s.notVerified(s.Args, "the value of a variable in --nodelabels")
		return
	}
	flag := "--nodelabels=" + cpa.Selector(s.Pool)
	if selector.Empty() {
		counts := "counts all nodes, not pool " + s.pool
		if c := s.Census(a.facts, selector); c.All > 0 {
			counts = fmt.Sprintf("counts all %d nodes, not pool %s, which has %d", c.All, s.pool, c.Pool)
		}
		s.required(s.Args, "%s; add %s", counts, flag).withFix("Add %s to CPA's arguments.", flag)
		return
	}
	if message, known := scopeFault(a, s, selector); message != "" {
		s.invalid(s.Args, "--nodelabels="+clip(value), "%s", message).withFix("Set %s in CPA's arguments.", flag)
	} else if !known {
		s.notVerified(s.Args, "no node of pool %s shows whether it has the labels %s", s.pool, clip(value))
	}
}

// scopeFault says which nodes a selector counts too many or too few: by the pool's label, then by nodes, then, where the
// pool has none, by what the NodePools give to theirs. It is not known where none of them says.
func scopeFault(a *Audit, s scaler, selector labels.Selector) (message string, known bool) {
	key, all := s.Pool.Requirement.Key, s.Pool.Requirement.Values
	values := cpa.SelectedValues(selector, s.Pool)
	missed := slices.DeleteFunc(slices.Clone(all), func(value string) bool { return slices.Contains(values, value) })
	c := s.Census(a.facts, selector)
	ours, others := cpa.NodePools(a.facts, s.Pool, selector)
	switch {
	case len(values) == 0:
		return fmt.Sprintf("counts no node of pool %s: theirs have %s=%s", s.pool, key, strings.Join(all, " or ")), true
	case len(missed) > 0:
		return fmt.Sprintf("does not count the pool's nodes with %s=%s", key, strings.Join(missed, " or ")), true
	case c.Counted > c.Inside:
		return fmt.Sprintf("counts %d nodes, %d of them not of pool %s", c.Counted, c.Counted-c.Inside, s.pool), true
	case c.Inside < c.Pool:
		return fmt.Sprintf("counts %d of the %d nodes of pool %s", c.Inside, c.Pool, s.pool), true
	case len(others) > 0 && !cpa.AsksFor(selector, key):
		return fmt.Sprintf("counts nodes of NodePool %s too, which is not of pool %s", strings.Join(others, ", "), s.pool), true
	}
	return "", c.Pool > 0 || len(ours) > 0 || cpa.AsksOnlyFor(selector, key)
}

// countsInstead is the pool whose label --nodelabels asks for, where that is not the one that is scaled; nil: none.
func (a *Audit) countsInstead(s scaler) *placement.Pool {
	selector, err := labels.Parse(s.Flags["nodelabels"])
	if err != nil || s.Pool == nil || len(cpa.SelectedValues(selector, s.Pool)) > 0 {
		return nil
	}
	for _, other := range a.pools.All() {
		if other != s.Pool && cpa.AsksFor(selector, other.Requirement.Key) && len(cpa.SelectedValues(selector, other)) > 0 {
			return other
		}
	}
	return nil
}
