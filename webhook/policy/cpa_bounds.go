package policy

import "slices"

// Applies to: the parameters of Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: linear: max is set, min is 2 or more, preventSinglePointFailure does not go beyond max. Ladder: no step of 1.
// Why: without max a wrong ratio has no end. With one placeholder nothing is warm while the one is refilled.
var cpaBounds = &Rule{
	ID:       "cpa-bounds",
	Summary:  "CPA's max is set and min is 2 or more: one warm node stays while another is refilled; linear mode never reaches 0.",
	Fix:      "Set max, and min to 2 or more, in CPA's parameters.",
	Subject:  ProportionalScaler,
	Severity: SeverityWarning,
	audit:    func(a *Audit) { a.eachCPA(judgeBounds) },
}

func judgeBounds(_ *Audit, s scaler) {
	switch p := s.Params; {
	case s.Unknown != "":
		s.notVerified(s.Args, "CPA's parameters: %s", s.Unknown)
	case p == nil: // cpa-config speaks
	case p.Linear != nil:
		judgeLinearBounds(s)
	default:
		judgeLadderBounds(s, "nodes", p.Ladder.Nodes, p.Ladder.Cores)
		judgeLadderBounds(s, "cores", p.Ladder.Cores, p.Ladder.Nodes)
	}
}

func judgeLinearBounds(s scaler) {
	l := s.Linear
	if l.Max == 0 {
		s.wrong("max is not set: nothing bounds how many nodes the placeholders start").
			withFix("Set max to the number of warm nodes that you are ready to pay for.")
	}
	switch {
	case s.WantsZero:
		s.wrong("linear can't scale to zero: min 0 is read as 1").milder(SeverityInfo).
			withFix("Use ladder with a step to 0 replicas, or set min to 2 or more.")
	case l.Min < 2:
		s.wrong("min is %d: nothing is warm while the only placeholder is refilled", max(l.Min, 1)).
			withFix("Set min to 2 or more.")
	}
	if l.Max == 1 && l.PreventSinglePointFailure {
		s.wrong("preventSinglePointFailure comes after max: with 2 nodes or more CPA sets 2 replicas, not max=1").
			withFix("Set max to 2 or more, or preventSinglePointFailure to false.")
	}
}

// judgeLadderBounds says where a ladder gives 1. Its last step bounds it, and 0 is a choice. The larger of both tables counts,
// and what the other one gives at the same time cannot be told.
func judgeLadderBounds(s scaler, unit string, steps, other [][2]int) {
	i := slices.IndexFunc(steps, func(step [2]int) bool { return step[1] == 1 })
	if i >= 0 && len(other) == 0 {
		s.wrong("from %d %s on the ladder gives 1: nothing is warm while the only placeholder is refilled", steps[i][0], unit).
			withFix("Make the ladder give 2 or more wherever it does not give 0.")
	}
}
