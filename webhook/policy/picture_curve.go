package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/config"
)

// Curve is how many placeholders a Cluster Proportional Autoscaler (CPA) wants, by the nodes that it counts.
type Curve struct {
	// Scaler is its NAMESPACE/NAME, Params its parameters in words.
	Scaler, Params string
	// Problem says why there is no curve; what follows is then empty.
	Problem string
	// Points are the replicas that it sets for so many nodes, by nodes.
	Points []CurvePoint
	// Others are the nodes without a placeholder that it counts, at least one: one Workspace sets it off. NodeCores are the
	// cores of the largest node that a placeholder may land on, of the type NodeType; 0: not known.
	Others    int
	NodeCores float64
	NodeType  string
	// Feedback tells that it counts the placeholders' own nodes too.
	Feedback bool
	// Min and Max bound the replicas; 0: nothing does.
	Min, Max int
	// Settled is where the count settles beside Others. Runaway tells that each placeholder's node calls for another;
	// Settled is then what Max stops it at, or 0 where nothing does.
	Settled int
	Runaway bool
}

// CurvePoint is a point of a Curve.
type CurvePoint struct{ Nodes, Replicas int }

// The most nodes that a curve reaches to, and about how many points it has.
const (
	mostNodesDrawn  = 100_000
	curveResolution = 160
)

func (a *Audit) curve(s *autoscaler) Curve {
	c := Curve{Scaler: s.Namespace + "/" + s.Name}
	selector, err := labels.Parse(s.flags["nodelabels"])
	switch p := s.params; {
	case p.unknown != "":
		c.Problem = "its parameters could not be read: " + p.unknown
	case p.fault != "":
		c.Problem = "it does not take its parameters: " + p.fault
	case p.autoscalerParams == nil:
		c.Problem = "its flags name no parameters"
	case err != nil:
		c.Problem = "its flag --nodelabels cannot be read"
	case s.paused():
		c.Problem = "it is scaled to 0 replicas and sets nothing"
	}
	if c.Problem != "" {
		return c
	}
	c.Params = s.params.words()
	c.Others = max(a.otherNodes(s, selector), 1)
	c.NodeCores, c.NodeType = a.largestNode(s)
	if c.NodeCores == 0 && s.params.byCores() {
		c.Problem = "it counts cores, and those of the pool's nodes are not known"
		return c
	}
	c.Feedback = !s.pool.Static && s.pool.Config.Autoscaler != config.NoAutoscaler && len(selectedValues(selector, s.pool)) > 0
	if l := s.params.Linear; l != nil {
		c.Min, c.Max = max(l.Min, 1), l.Max
	}
	c.settle(s)
	c.trace(s.params.autoscalerParams)
	return c
}

// settle finds the fixed point where warm nodes count, else the one value.
func (c *Curve) settle(s *autoscaler) {
	switch p := s.params; {
	case !c.Feedback:
		c.Settled = p.replicas(c.Others, c.NodeCores)
	case p.Linear != nil:
		c.Settled, c.Runaway = p.Linear.FixedPoint(c.Others, c.NodeCores)
		c.Runaway = c.Runaway && (p.Linear.Max == 0 || p.Linear.Max > c.Min)
	default:
		c.Settled = p.Ladder.settled(c.Others, c.NodeCores)
		c.Runaway = len(s.ladderRunaway(c.Others, c.NodeCores)) > 0
	}
}

// trace follows the curve to some way beyond the point where it settles.
func (c *Curve) trace(p *autoscalerParams) {
	reach := 3 * (c.Others + max(c.Settled, 3))
	if c.Runaway {
		reach = c.Others + max(c.Settled, 10)
		reach += reach / 3
	}
	reach = min(reach, mostNodesDrawn)
	for nodes := 0; nodes <= reach; nodes += max(reach/curveResolution, 1) {
		c.Points = append(c.Points, CurvePoint{nodes, p.replicas(nodes, float64(nodes)*c.NodeCores)})
	}
}

// replicas are what CPA sets at so many nodes with so many cores in all.
func (p *autoscalerParams) replicas(nodes int, cores float64) int {
	if p.Linear != nil {
		return p.Linear.Replicas(nodes, cores)
	}
	return p.Ladder.replicas(nodes, cores)
}

func (p *autoscalerParams) byCores() bool {
	return p.Linear != nil && p.Linear.CoresPerReplica > 0 || p.Ladder != nil && len(p.Ladder.Cores) > 0
}

// words writes the parameters down.
func (p *autoscalerParams) words() string {
	if l := p.Ladder; l != nil {
		steps := slices.Concat(l.Nodes, l.Cores)
		return fmt.Sprintf("ladder with %d steps by nodes and %d by cores, up to %d", len(l.Nodes), len(steps)-len(l.Nodes), l.most())
	}
	var parts []string
	l := p.Linear
	for _, ratio := range []struct {
		name  string
		value float64
	}{{"coresPerReplica", l.CoresPerReplica}, {"nodesPerReplica", l.NodesPerReplica}, {"min", float64(l.Min)}, {"max", float64(l.Max)}} {
		if ratio.value != 0 {
			parts = append(parts, fmt.Sprintf("%s %g", ratio.name, ratio.value))
		}
	}
	if l.PreventSinglePointFailure {
		parts = append(parts, "preventSinglePointFailure")
	}
	return strings.Join(parts, ", ")
}
