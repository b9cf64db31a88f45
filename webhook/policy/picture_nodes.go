package policy

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
	"warmpool.sh/webhook/sizing"
)

// NodeState says what a node is to its pool.
type NodeState string

// The states of nodes, in the order in which they are drawn.
const (
	NodeWarm    NodeState = "warm"    // a placeholder holds it, and its images are there
	NodeWarming NodeState = "warming" // a placeholder holds it and still pulls
	NodePlanned NodeState = "planned" // no node, but what one with the placeholder will look like
	NodeInUse   NodeState = "in use"  // Workspaces and no placeholder
	NodeEmpty   NodeState = "empty"   // neither
	NodeOut     NodeState = "out"     // takes no pods: not ready, cordoned or being deleted
	NodeUnknown NodeState = "unknown" // pods could not be read
)

var nodeStates = []NodeState{NodeWarm, NodeWarming, NodePlanned, NodeInUse, NodeEmpty, NodeOut, NodeUnknown}

// Freshness tells whether the pods of placeholders on a node have pulled what the pool's templates ask for.
type Freshness string

// The values of Freshness. Without placeholder it is empty.
const (
	Fresh        Freshness = "current"
	Stale        Freshness = "stale"
	FreshUnknown Freshness = "unknown"
)

// NodeGroup is nodes that are drawn alike. Its quantities are of the Picture's resource.
type NodeGroup struct {
	// Names are those of the nodes, sorted; of a planned one there are none.
	Names []string
	// Type is the instance type, and State with Why what it is to the pool.
	Type   string
	State  NodeState
	Why    string
	Images Freshness

	// Allocatable is the width of the box, Daemons and Placeholder what these take of it.
	Allocatable, Daemons, Placeholder resource.Quantity
	// Workspaces are what each Workspace takes, largest first.
	Workspaces []resource.Quantity
	// Threshold is what Workspaces may take together beside the placeholder; nil: the pool has no placeholder. A Workspace
	// beyond it takes the placeholder's place.
	Threshold *resource.Quantity
}

// nodeGroups draws the nodes of a pool, and where no placeholder is on one yet, what such nodes will look like.
func (p *painter) nodeGroups(pool *placement.Pool, name corev1.ResourceName) []NodeGroup {
	var groups []*NodeGroup
	byLook := map[string]*NodeGroup{}
	held := false
	for _, node := range p.nodes(pool) {
		held = held || len(p.placeholdersOn[node.Name]) > 0
		drawn := p.draw(pool, node, name)
		look := fmt.Sprint(drawn.Type, drawn.State, drawn.Why, drawn.Images, drawn.Allocatable.String(), drawn.Daemons.String(),
			drawn.Placeholder.String(), texts(drawn.Workspaces))
		if byLook[look] == nil {
			byLook[look] = drawn
			groups = append(groups, drawn)
		}
		byLook[look].Names = append(byLook[look].Names, node.Name)
	}
	if !held {
		groups = append(groups, p.planned(pool, name)...)
	}
	slices.SortStableFunc(groups, func(a, b *NodeGroup) int {
		return cmp.Or(cmp.Compare(slices.Index(nodeStates, a.State), slices.Index(nodeStates, b.State)), cmp.Compare(len(b.Names), len(a.Names)))
	})
	drawn := make([]NodeGroup, 0, len(groups))
	for _, g := range groups {
		drawn = append(drawn, *g)
	}
	return drawn
}

func texts(quantities []resource.Quantity) []string {
	var all []string
	for _, q := range quantities {
		all = append(all, q.String())
	}
	return all
}

func (p *painter) draw(pool *placement.Pool, node *corev1.Node, name corev1.ResourceName) *NodeGroup {
	g := &NodeGroup{Type: node.Labels[corev1.LabelInstanceTypeStable], Allocatable: node.Status.Allocatable[name]}
	if shape := p.sizes.Pool(pool.Config.Name).ShapeOf(node); shape != nil {
		g.Daemons = shape.Offers[name].Daemons
	}
	placeholders, warmed := p.placeholdersOn[node.Name], false
	for _, pod := range placeholders {
		g.Placeholder.Add(sizing.Request(&pod.Spec, pod.Namespace, p.facts)[name])
		warmed = warmed || warm(pod)
	}
	for _, pod := range p.workspacesOn[node.Name] {
		g.Workspaces = append(g.Workspaces, sizing.Request(&pod.Spec, pod.Namespace, p.facts)[name])
	}
	slices.SortFunc(g.Workspaces, func(a, b resource.Quantity) int { return b.Cmp(a) })
	g.Images = p.freshness(pool, placeholders)
	g.State, g.Why = p.state(node, len(placeholders) > 0, warmed, len(g.Workspaces) > 0)
	if len(placeholders) > 0 {
		g.limit(g.Placeholder)
	} else if of := p.of(pool.Config.Name); len(of) > 0 {
		g.limit(of[0].request()[name])
	}
	return g
}

// limit marks what is left beside the placeholder's request.
func (g *NodeGroup) limit(placeholder resource.Quantity) {
	left := g.Allocatable.DeepCopy()
	left.Sub(g.Daemons)
	left.Sub(placeholder)
	if left.Sign() < 0 {
		left = resource.Quantity{}
	}
	g.Threshold = &left
}

func (p *painter) state(node *corev1.Node, placeholder, warmed, used bool) (state NodeState, why string) {
	notReady := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
	switch {
	case node.DeletionTimestamp != nil:
		return NodeOut, "it is being deleted"
	case notReady:
		return NodeOut, "it is not ready"
	case node.Spec.Unschedulable:
		return NodeOut, "it is cordoned"
	case !p.facts.Pods.Known():
		return NodeUnknown, "pods could not be read"
	case warmed:
		return NodeWarm, ""
	case placeholder:
		return NodeWarming, "the placeholder has not pulled all its images yet"
	case used:
		return NodeInUse, "no placeholder"
	default:
		return NodeEmpty, "neither placeholder nor Workspace"
	}
}

func (p *painter) freshness(pool *placement.Pool, placeholders []*corev1.Pod) Freshness {
	if len(placeholders) == 0 {
		return ""
	}
	var pulled []string
	for _, pod := range placeholders {
		pulled = append(pulled, prepull.Present(&pod.Spec)...)
	}
	known := Fresh
	for _, source := range p.sources[pool.Config.Name] {
		switch {
		case source.Beyond:
		case source.Image == "":
			known = FreshUnknown
		case !pulls(pulled, source.Image):
			return Stale
		}
	}
	if len(p.sources[pool.Config.Name]) == 0 {
		return FreshUnknown
	}
	return known
}

// planned is a node of each shape with each placeholder that may land there.
func (p *painter) planned(pool *placement.Pool, name corev1.ResourceName) []*NodeGroup {
	var groups []*NodeGroup
	shapes := p.sizes.Pool(pool.Config.Name).Shapes
	for _, o := range p.of(pool.Config.Name) {
		for _, shape := range shapes {
			offer, known := shape.Offers[name]
			if !known || !shape.Hosts(o.Spec) {
				continue
			}
			g := &NodeGroup{
				Type: shape.NameAmong(shapes), State: NodePlanned, Allocatable: offer.Allocatable, Daemons: offer.Daemons,
				Placeholder: o.request()[name],
				Why:         fmt.Sprintf("placeholder %s/%s, replicas %d; none of its pods is on a node of the pool", o.Namespace, o.Name, replicasOf(o.Deployment)),
			}
			g.limit(g.Placeholder)
			groups = append(groups, g)
		}
	}
	return groups
}
