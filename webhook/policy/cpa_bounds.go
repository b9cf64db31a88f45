package policy

import (
	"fmt"
	"slices"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// Applies to: the parameters of Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: linear: max is set, min is 2 or more, preventSinglePointFailure does not go beyond max. Ladder: no step of 1.
// Why: without max a wrong ratio has no end. With one placeholder nothing is warm while the one is refilled.
var cpaBounds = &Rule{
	ID:        "cpa-bounds",
	Summary:   "CPA's max is set and min is 2 or more: one warm node stays while another is refilled; linear mode never reaches 0.",
	Fix:       "Set max, and min to 2 or more, in CPA's parameters.",
	Subject:   ProportionalScaler,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    func(a *Audit) []Finding { return a.eachAutoscaler(checkCPABounds) },
}

func checkCPABounds(s *autoscaler) []Finding {
	switch p := s.params.autoscalerParams; {
	case s.params.unknown != "":
		return []Finding{notVerified(s.args, "CPA's parameters: "+s.params.unknown)}
	case p == nil:
		return nil // cpa-config speaks
	case p.Linear != nil:
		return s.linearBounds(p.Linear, p.WantsZero)
	default:
		return s.ladderBounds(p.Ladder)
	}
}

func (s *autoscaler) linearBounds(l *sizing.Linear, wantsZero bool) []Finding {
	var findings []Finding
	if l.Max == 0 {
		findings = append(findings, s.invalid("max is not set: nothing bounds how many nodes the placeholders start").
			withFix("Set max to the number of warm nodes that you are ready to pay for."))
	}
	switch {
	case wantsZero:
		findings = append(findings, s.invalid("linear can't scale to zero: min 0 is read as 1").
			milder(SeverityInfo).withFix("Use ladder with a step to 0 replicas, or set min to 2 or more."))
	case l.Min < 2:
		findings = append(findings, s.invalid(fmt.Sprintf("min is %d: nothing is warm while the only placeholder is refilled", max(l.Min, 1))).
			withFix("Set min to 2 or more."))
	}
	if l.Max == 1 && l.PreventSinglePointFailure {
		findings = append(findings, s.invalid("preventSinglePointFailure comes after max: with 2 nodes or more CPA sets 2 replicas, not max=1").
			withFix("Set max to 2 or more, or preventSinglePointFailure to false."))
	}
	return findings
}

// ladderBounds says where a ladder gives 1. Its last step bounds it, and 0 is a choice.
func (s *autoscaler) ladderBounds(l *ladder) []Finding {
	for _, table := range []struct {
		unit         string
		steps, other [][2]int
	}{{"nodes", l.Nodes, l.Cores}, {"cores", l.Cores, l.Nodes}} {
		i := slices.IndexFunc(table.steps, func(step [2]int) bool { return step[1] == 1 })
		// The larger of both tables counts, and what the other one gives at the same time cannot be told.
		if i >= 0 && len(table.other) == 0 {
			return []Finding{s.invalid(fmt.Sprintf("from %d %s on the ladder gives 1: nothing is warm while the only placeholder is refilled", table.steps[i][0], table.unit)).
				withFix("Make the ladder give 2 or more wherever it does not give 0.")}
		}
	}
	return nil
}
