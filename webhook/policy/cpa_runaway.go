package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/cpa"
	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/sizing"
)

// Applies to: Cluster Proportional Autoscalers (CPA) that count the nodes of the pool whose placeholders they scale.
// Requires: nodesPerReplica > 1, coresPerReplica > the cores of a node, a ladder that neither climbs by its own steps nor
// falls as nodes rise.
// Why: a placeholder holds a node of its own, which CPA counts like any other. Where that node calls for one more
// placeholder, the pool grows by itself, up to max or without end. Where it calls for fewer, the count flips: warm nodes
// are started and given up in turns, and never settle.
var cpaRunaway = &Rule{
	ID:       "cpa-runaway",
	Summary:  "A warm node does not call for the next one, nor for fewer: nodesPerReplica > 1, coresPerReplica > the cores of a node, a ladder that does not fall.",
	Fix:      "Raise the ratio: nodesPerReplica to 2 or more, coresPerReplica to twice the cores of the pool's largest node or more.",
	Subject:  ProportionalScaler,
	Severity: SeverityError,
	audit:    func(a *Audit) { a.eachCPA(judgeRunaway) },
}

// MostForOne is how many warm nodes one other node may call for before a ratio is as good as none.
const MostForOne = 10

func judgeRunaway(a *Audit, s scaler) {
	selector, err := labels.Parse(s.Flags["nodelabels"])
	switch {
	case s.Unknown != "":
		s.notVerified(s.Args, "CPA's parameters: %s", s.Unknown)
		return
	case s.Params == nil || err != nil || s.Pool == nil:
		return // cpa-config, cpa-target or placeholder-pool speak
	case !s.AddsNodes():
		return // no one starts nodes for placeholders
	case len(cpa.SelectedValues(selector, s.Pool)) == 0:
		return // it does not count them; cpa-scope speaks
	}
	others := a.OtherNodes(s.Scaler, selector)
	cores, shape := s.LargestNode(a.sizes)
	if s.Ladder != nil {
		judgeLadder(s, others, cores)
	} else {
		judgeLinear(s, others, cores, shape, a.sizes.Pool(s.pool).Unknown)
	}
}

func judgeLinear(s scaler, others int, cores float64, shape, unknown string) {
	l := *s.Linear
	if l.Max != 0 && l.Max <= max(l.Min, 1) && (l.Max > 1 || !l.PreventSinglePointFailure) {
		return // a fixed count
	}
	ratio := decidingRatio(l, cores, shape)
	settled, runaway := l.FixedPoint(others, cores)
	unbounded := l
	unbounded.Max, unbounded.Min = 0, 0
	forOne, _ := unbounded.FixedPoint(1, cores)
	switch {
	case runaway && l.Max == 0:
		s.wrong("runaway, unbounded: with %s each warm node calls for another%s; there is no fixed point and no max", ratio, trigger(s, cores))
	case runaway:
		s.wrong("runaway up to max=%d: with %s each warm node calls for another%s; beside %s the count settles at %d",
			l.Max, ratio, trigger(s, cores), phrase.Count(others, "other node"), settled)
	case l.CoresPerReplica > 0 && cores == 0:
		s.params().notVerified(s.Path, "coresPerReplica: %s", unknown)
	case forOne > MostForOne:
		s.wrong("%s calls for %d warm nodes for one other node; beside %s the count settles at %d", ratio, forOne, phrase.Count(others, "other node"), settled).
			milder(SeverityWarning)
	}
}

// decidingRatio writes down the ratio that calls for more placeholders.
func decidingRatio(l sizing.Linear, cores float64, shape string) string {
	if cores > 0 && l.CoresPerReplica > 0 && (l.NodesPerReplica == 0 || l.CoresPerReplica/cores < l.NodesPerReplica) {
		return fmt.Sprintf("coresPerReplica %g on nodes of %g cores (%s)", l.CoresPerReplica, cores, shape)
	}
	return fmt.Sprintf("nodesPerReplica %g", l.NodesPerReplica)
}

// trigger says what sets a runaway off where placeholders stand beside Workspaces, one on each node.
func trigger(s scaler, cores float64) string {
	if _, atOnce := s.Linear.FixedPoint(0, cores); !atOnce && s.Pool.Config.Sizing.Mode == config.Coexist {
		return ", once Workspaces fill a node"
	}
	return ""
}

// judgeLadder follows a ladder from one other node on: its own steps must not carry it to the top.
func judgeLadder(s scaler, others int, cores float64) {
	l := s.Ladder
	if len(l.Cores) > 0 && cores == 0 {
		s.params().notVerified(s.Path, "coresToReplicas: the cores of the pool's nodes are not known")
		return
	}
	if f := l.Flips(others, cores); f != nil {
		s.wrong("the count never settles: beside %s, %d placeholders make %d nodes, at which the ladder calls for %d, and from there it comes back to %d",
			phrase.Count(f.Others, "other node"), f.Most, f.Others+f.Most, f.Then, f.Most).
			withFix("Let no step call for fewer replicas than the step before: a larger cluster needs no fewer warm nodes.")
		return
	}
	if forOne, first, runaway := l.Runaway(cores); runaway {
		s.wrong("runaway up to the last step: one node calls for %d placeholders, and their nodes for more, up to %d; beside %s the count settles at %d",
			first, forOne, phrase.Count(others, "other node"), l.Settled(others, cores)).
			withFix("Spread the steps: each should need more nodes than the replicas of the step before.")
	}
}
