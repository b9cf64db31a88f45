package poolview

import (
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cpa"
)

// Curve is how many placeholders a Cluster Proportional Autoscaler (CPA) wants, by the nodes that it counts.
type Curve struct {
	// Scaler is its NAMESPACE/NAME, Params its parameters in words.
	Scaler, Params string
	// Problem says why there is no curve; what follows is then empty.
	Problem string
	// Points are the replicas that it sets for so many nodes, by nodes.
	Points []Point
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

// Point is a point of a Curve.
type Point struct{ Nodes, Replicas int }

// The most nodes that a curve reaches to, and about how many points it has.
const (
	mostNodesDrawn  = 100_000
	curveResolution = 160
)

func (v *viewer) curve(s *cpa.Scaler) Curve {
	c := Curve{Scaler: s.Namespace + "/" + s.Name}
	selector, err := labels.Parse(s.Flags["nodelabels"])
	switch {
	case s.Unknown != "":
		c.Problem = "its parameters could not be read: " + s.Unknown
	case s.Fault != "":
		c.Problem = "it does not take its parameters: " + s.Fault
	case s.Params == nil:
		c.Problem = "its flags name no parameters"
	case err != nil:
		c.Problem = "its flag --nodelabels cannot be read"
	case s.Paused():
		c.Problem = "it is scaled to 0 replicas and sets nothing"
	}
	if c.Problem != "" {
		return c
	}
	c.Params = s.Words()
	c.Others = v.OtherNodes(s, selector)
	c.NodeCores, c.NodeType = s.LargestNode(v.Sizes())
	if c.NodeCores == 0 && s.ByCores() {
		c.Problem = "it counts cores, and those of the pool's nodes are not known"
		return c
	}
	c.Feedback = s.AddsNodes() && len(cpa.SelectedValues(selector, s.Pool)) > 0
	if l := s.Linear; l != nil {
		c.Min, c.Max = max(l.Min, 1), l.Max
	}
	c.settle(s.Params)
	c.trace(s.Params)
	return c
}

// settle finds the fixed point where warm nodes count, else the one value.
func (c *Curve) settle(p *cpa.Params) {
	switch {
	case !c.Feedback:
		c.Settled = p.Replicas(c.Others, c.NodeCores)
	case p.Linear != nil:
		c.Settled, c.Runaway = p.Linear.FixedPoint(c.Others, c.NodeCores)
		c.Runaway = c.Runaway && (p.Linear.Max == 0 || p.Linear.Max > c.Min)
	default:
		_, _, runaway := p.Ladder.Runaway(c.NodeCores)
		c.Settled, c.Runaway = p.Ladder.Settled(c.Others, c.NodeCores), runaway || p.Ladder.Flips(c.Others, c.NodeCores) != nil
	}
}

// trace follows the curve to some way beyond the point where it settles.
func (c *Curve) trace(p *cpa.Params) {
	reach := 3 * (c.Others + max(c.Settled, 3))
	if c.Runaway {
		reach = c.Others + max(c.Settled, 10)
		reach += reach / 3
	}
	reach = min(reach, mostNodesDrawn)
	for nodes := 0; nodes <= reach; nodes += max(reach/curveResolution, 1) {
		c.Points = append(c.Points, Point{nodes, p.Replicas(nodes, float64(nodes)*c.NodeCores)})
	}
}
