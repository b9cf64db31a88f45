package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// Applies to: Cluster Proportional Autoscalers (CPA) that count the nodes of the pool whose placeholders they scale.
// Requires: nodesPerReplica > 1, coresPerReplica > the cores of a node, a ladder that neither climbs by its own steps nor
// falls as nodes rise.
// Why: a placeholder holds a node of its own, which CPA counts like any other. Where that node calls for one more
// placeholder, the pool grows by itself, up to max or without end. Where it calls for fewer, the count flips: warm nodes
// are started and given up in turns, and never settle.
var cpaRunaway = &Rule{
	ID:        "cpa-runaway",
	Summary:   "A warm node does not call for the next one, nor for fewer: nodesPerReplica > 1, coresPerReplica > the cores of a node, a ladder that does not fall.",
	Fix:       "Raise the ratio: nodesPerReplica to 2 or more, coresPerReplica to twice the cores of the pool's largest node or more.",
	Subject:   ProportionalScaler,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around: func(a *Audit) []Finding {
		return a.eachAutoscaler(func(s *autoscaler) []Finding { return checkCPARunaway(a, s) })
	},
}

// mostForOne is how many warm nodes one other node may call for before a ratio is as good as none.
const mostForOne = 10

func checkCPARunaway(a *Audit, s *autoscaler) []Finding {
	selector, err := labels.Parse(s.flags["nodelabels"])
	switch {
	case s.params.unknown != "":
		return []Finding{notVerified(s.args, "CPA's parameters: "+s.params.unknown)}
	case s.params.autoscalerParams == nil || err != nil || s.pool == nil:
		return nil // cpa-config, cpa-target or placeholder-pool speak
	case s.pool.Static || s.pool.Config.Autoscaler == config.NoAutoscaler:
		return nil // no one starts nodes for placeholders
	case len(selectedValues(selector, s.pool)) == 0:
		return nil // it does not count them; cpa-scope speaks
	}
	others := max(a.otherNodes(s, selector), 1) // one Workspace is enough to set it off
	cores, shape := a.largestNode(s)
	if s.params.Ladder != nil {
		return s.ladderRunaway(others, cores)
	}
	return s.linearRunaway(*s.params.Linear, others, cores, shape, a.sizes.Pool(s.poolName()).Unknown)
}

func (s *autoscaler) linearRunaway(l sizing.Linear, others int, cores float64, shape, unknown string) []Finding {
	if l.Max != 0 && l.Max <= max(l.Min, 1) && (l.Max > 1 || !l.PreventSinglePointFailure) {
		return nil // a fixed count
	}
	ratio := decidingRatio(l, cores, shape)
	settled, runaway := l.FixedPoint(others, cores)
	unbounded := l
	unbounded.Max, unbounded.Min = 0, 0
	forOne, _ := unbounded.FixedPoint(1, cores)
	switch {
	case runaway && l.Max == 0:
		return []Finding{s.invalid(fmt.Sprintf("runaway, unbounded: with %s each warm node calls for another%s; there is no fixed point and no max", ratio, s.trigger(l, cores)))}
	case runaway:
		return []Finding{s.invalid(fmt.Sprintf("runaway up to max=%d: with %s each warm node calls for another%s; beside %s the count settles at %d",
			l.Max, ratio, s.trigger(l, cores), otherNodes(others), settled))}
	case l.CoresPerReplica > 0 && cores == 0:
		return []Finding{notVerified(s.params.path, "coresPerReplica: "+unknown).about(s.params.object.Kind, s.params.object.Namespace, s.params.object.Name, s.poolName())}
	case forOne > mostForOne:
		return []Finding{s.invalid(fmt.Sprintf("%s calls for %d warm nodes for one other node; beside %s the count settles at %d",
			ratio, forOne, otherNodes(others), settled)).milder(SeverityWarning)}
	}
	return nil
}

// decidingRatio writes down the ratio that calls for more placeholders.
func decidingRatio(l sizing.Linear, cores float64, shape string) string {
	if cores > 0 && l.CoresPerReplica > 0 && (l.NodesPerReplica == 0 || l.CoresPerReplica/cores < l.NodesPerReplica) {
		return fmt.Sprintf("coresPerReplica %g on nodes of %g cores (%s)", l.CoresPerReplica, cores, shape)
	}
	return fmt.Sprintf("nodesPerReplica %g", l.NodesPerReplica)
}

// trigger says what sets a runaway off where placeholders stand beside Workspaces, one on each node.
func (s *autoscaler) trigger(l sizing.Linear, cores float64) string {
	if _, atOnce := l.FixedPoint(0, cores); !atOnce && s.pool.Config.Sizing.Mode == config.Coexist {
		return ", once Workspaces fill a node"
	}
	return ""
}

// largestNode are the cores of the largest type of nodes that a placeholder may land on; 0: not known.
func (a *Audit) largestNode(s *autoscaler) (cores float64, shape string) {
	for _, t := range s.targets {
		if t.placeholder == nil {
			continue
		}
		for _, sh := range a.sizes.Pool(s.poolName()).Shapes {
			offer, known := sh.Offers[corev1.ResourceCPU]
			if have := sizing.Cores(offer.Allocatable); known && have > cores && sh.Hosts(t.placeholder.Spec) {
				cores, shape = have, sh.NameAmong(nil)
			}
		}
	}
	return cores, shape
}

func otherNodes(n int) string {
	if n == 1 {
		return "1 other node"
	}
	return fmt.Sprintf("%d other nodes", n)
}

// otherNodes is how many nodes CPA counts that no placeholder of its targets is on.
func (a *Audit) otherNodes(s *autoscaler, selector labels.Selector) int {
	held := map[string]bool{}
	for _, t := range s.targets {
		if t.placeholder != nil {
			for _, pod := range a.pods(t.placeholder) {
				held[pod.Spec.NodeName] = true
			}
		}
	}
	others := 0
	for name, node := range a.facts.Nodes.All() {
		if s.counts(node) && selector.Matches(labels.Set(node.Labels)) && !held[name] {
			others++
		}
	}
	return others
}
