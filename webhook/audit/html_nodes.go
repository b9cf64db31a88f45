package audit

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/poolview"
)

// nodePage is a group of equal nodes as a box. Places and widths are percentages: of the pool's largest node for the box,
// of the box for what is in it.
type nodePage struct {
	*poolview.NodeGroup
	Count     int
	Class     string
	Amount    string // exact, for those who measure
	Label     string // the whole view in words
	Numbers   string
	Width     string
	Parts     []part
	Threshold string // place of the threshold; empty: none
	Limit     string // the threshold in words
	NameList  list
}

// part is a thing on a node: DaemonSets, a Workspace, the placeholder.
type part struct {
	Class    string
	At, Wide string
	Amount   string
	Title    string
}

// The most groups of nodes of a pool, and of Workspaces on a node, that are drawn one by one.
const (
	mostGroups     = 12
	mostWorkspaces = 24
)

// stateClasses are the states as the style calls them.
var stateClasses = map[poolview.NodeState]string{
	poolview.NodeWarm: "warm", poolview.NodeWarming: "warming", poolview.NodePlanned: "planned", poolview.NodeInUse: "used",
	poolview.NodeEmpty: "empty", poolview.NodeOut: "out", poolview.NodeUnknown: "unknown",
}

// addNodes draws the groups to one scale, and counts those that are not drawn.
func (p *poolPage) addNodes() {
	var largest float64
	for i := range p.Nodes {
		largest = max(largest, p.Nodes[i].Allocatable.AsApproximateFloat64())
	}
	for i := range p.Nodes {
		g := &p.Nodes[i]
		p.NodeCount += len(g.Names)
		p.HasPlaceholder = p.HasPlaceholder || g.Placeholder.Sign() > 0
		p.HasThreshold = p.HasThreshold || g.Threshold != nil
		p.count(g)
		if len(p.Groups) == mostGroups {
			p.MoreGroups, p.MoreNodes = p.MoreGroups+1, p.MoreNodes+len(g.Names)
			continue
		}
		p.Groups = append(p.Groups, newNodePage(g, p.Resource, largest))
	}
}

func (p *poolPage) count(g *poolview.NodeGroup) {
	if len(g.Names) == 0 {
		return
	}
	if last := len(p.States) - 1; last >= 0 && p.States[last].State == g.State {
		p.States[last].Count += len(g.Names)
		return
	}
	p.States = append(p.States, stateCount{g.State, stateClasses[g.State], len(g.Names)})
}

func newNodePage(g *poolview.NodeGroup, name corev1.ResourceName, largest float64) nodePage {
	whole := g.Allocatable.AsApproximateFloat64()
	n := nodePage{
		NodeGroup: g, Count: len(g.Names), Amount: exact(g.Allocatable), Class: stateClasses[g.State], Width: percent(whole, largest), NameList: shorten(g.Names, mostNames),
	}
	add := func(class string, at float64, quantity resource.Quantity, what string) float64 {
		wide := quantity.AsApproximateFloat64()
		if wide <= 0 || whole <= 0 {
			return at
		}
		n.Parts = append(n.Parts, part{
			Class: class, At: percent(at, whole), Wide: percent(min(wide, whole), whole), Amount: exact(quantity), Title: what + " " + amount(name, quantity),
		})
		return at + wide
	}
	at := add("daemons", 0, g.Daemons, "DaemonSets")
	together, rest := resource.Quantity{}, resource.Quantity{}
	for i, workspace := range g.Workspaces {
		together.Add(workspace)
		if i < mostWorkspaces {
			at = add("workspace", at, workspace, "Workspace")
		} else {
			rest.Add(workspace)
		}
	}
	at = add("workspace", at, rest, fmt.Sprintf("%d more Workspaces", len(g.Workspaces)-mostWorkspaces))
	add("placeholder", max(whole-g.Placeholder.AsApproximateFloat64(), at), g.Placeholder, "Placeholder")
	n.describe(name, together)
	if g.Threshold != nil && whole > 0 {
		n.Threshold = percent(g.Daemons.AsApproximateFloat64()+g.Threshold.AsApproximateFloat64(), whole)
		n.Limit = amount(name, *g.Threshold)
	}
	return n
}

// describe puts the box into words.
func (n *nodePage) describe(name corev1.ResourceName, workspaces resource.Quantity) {
	free := n.Allocatable.DeepCopy()
	for _, taken := range []resource.Quantity{n.Daemons, n.Placeholder, workspaces} {
		free.Sub(taken)
	}
	parts := []string{"DaemonSets " + amount(name, n.Daemons)}
	if len(n.Workspaces) > 0 {
		parts = append(parts, phrase.Count(len(n.Workspaces), "Workspace")+" "+amount(name, workspaces))
	}
	if free.Sign() < 0 {
		free.Neg()
		parts = append(parts, "short of "+amount(name, free))
	} else {
		parts = append(parts, "free "+amount(name, free))
	}
	if n.Placeholder.Sign() > 0 || n.State == poolview.NodeWarm || n.State == poolview.NodeWarming {
		parts = append(parts, "placeholder "+amount(name, n.Placeholder))
	}
	n.Numbers = strings.Join(parts, " · ")
	n.Label = fmt.Sprintf("%s, %s of %s: %s", n.State, amount(name, n.Allocatable), name, strings.Join(parts, ", "))
}

// percent is the part of the whole as SVG takes it.
func percent(part, whole float64) string {
	if whole <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%.3f%%", 100*min(max(part/whole, 0), 1))
}

func exact(q resource.Quantity) string {
	return strconv.FormatFloat(float64(q.MilliValue())/1000, 'f', -1, 64) // as it is written: 31.9, not 31.900000000000002
}

// amount writes a quantity for people: cores, GiB, or as it is.
func amount(name corev1.ResourceName, q resource.Quantity) string {
	const gib = 1 << 30
	switch name {
	case corev1.ResourceCPU:
		return rounded(q.AsApproximateFloat64())
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return rounded(q.AsApproximateFloat64()/gib) + " GiB"
	default:
		return q.String()
	}
}

// rounded keeps two decimals at most.
func rounded(value float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", value), "0"), ".")
}
