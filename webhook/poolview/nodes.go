package poolview

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
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

// NodeGroup is nodes that are drawn alike. Its quantities are of the View's resource.
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

// look is what nodes of one group have in common.
func (g *NodeGroup) look() string {
	var workspaces []string
	for _, workspace := range g.Workspaces {
		workspaces = append(workspaces, workspace.String())
	}
	return fmt.Sprint(g.Type, g.State, g.Why, g.Images, g.Allocatable.String(), g.Daemons.String(), g.Placeholder.String(), workspaces)
}

// nodeGroups are the nodes of a pool, and where no placeholder is on one yet, what such nodes will look like.
func (v *viewer) nodeGroups(pool *placement.Pool, name corev1.ResourceName) []NodeGroup {
	groups := []NodeGroup{}
	at := map[string]int{}
	held := false
	for _, node := range v.Nodes(pool) {
		held = held || len(v.placeholdersOn[node.Name]) > 0
		group := v.group(pool.Config.Name, node, name)
		i, known := at[group.look()]
		if !known {
			i = len(groups)
			at[group.look()], groups = i, append(groups, group)
		}
		groups[i].Names = append(groups[i].Names, node.Name)
	}
	if !held {
		groups = append(groups, v.planned(pool.Config.Name, name)...)
	}
	slices.SortStableFunc(groups, func(a, b NodeGroup) int {
		return cmp.Or(cmp.Compare(slices.Index(nodeStates, a.State), slices.Index(nodeStates, b.State)), cmp.Compare(len(b.Names), len(a.Names)))
	})
	return groups
}

func (v *viewer) group(pool string, node *corev1.Node, name corev1.ResourceName) NodeGroup {
	g := NodeGroup{Type: node.Labels[corev1.LabelInstanceTypeStable], Allocatable: node.Status.Allocatable[name]}
	if shape := v.Sizes().Pool(pool).ShapeOf(node); shape != nil {
		g.Daemons = shape.Offers[name].Daemons
	}
	placeholders, workspaces := v.placeholdersOn[node.Name], v.workspacesOn[node.Name]
	for _, pod := range placeholders {
		g.Placeholder.Add(sizing.Request(&pod.Spec, pod.Namespace, v.Facts())[name])
	}
	for _, pod := range workspaces {
		g.Workspaces = append(g.Workspaces, sizing.Request(&pod.Spec, pod.Namespace, v.Facts())[name])
	}
	slices.SortFunc(g.Workspaces, func(a, b resource.Quantity) int { return b.Cmp(a) })
	g.Images = v.freshness(pool, placeholders)
	g.State, g.Why = v.state(node, placeholders, workspaces)
	if len(placeholders) > 0 {
		g.limit(g.Placeholder)
	} else if of := v.Of(pool); len(of) > 0 {
		g.limit(of[0].Request()[name])
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

func (v *viewer) state(node *corev1.Node, placeholders, workspaces []pooled) (state NodeState, why string) {
	switch {
	case node.DeletionTimestamp != nil:
		return NodeOut, "it is being deleted"
	case !cluster.MayBeReady(node):
		return NodeOut, "it is not ready"
	case node.Spec.Unschedulable:
		return NodeOut, "it is cordoned"
	case !v.Facts().Pods.Known():
		return NodeUnknown, "pods could not be read"
	case slices.ContainsFunc(placeholders, func(pod pooled) bool { return policy.IsWarm(pod.Pod) }):
		return NodeWarm, ""
	case len(placeholders) > 0:
		return NodeWarming, "the placeholder has not pulled all its images yet"
	case len(workspaces) > 0:
		return NodeInUse, "no placeholder"
	default:
		return NodeEmpty, "neither placeholder nor Workspace"
	}
}

// planned is a node of each shape with each placeholder that may land there.
func (v *viewer) planned(pool string, name corev1.ResourceName) []NodeGroup {
	var groups []NodeGroup
	shapes := v.Sizes().Pool(pool).Shapes
	for _, o := range v.Of(pool) {
		for _, shape := range shapes {
			offer, known := shape.Offers[name]
			if !known || !shape.Hosts(o.Spec) {
				continue
			}
			g := NodeGroup{
				Type: shape.NameAmong(shapes), State: NodePlanned, Allocatable: offer.Allocatable, Daemons: offer.Daemons,
				Placeholder: o.Request()[name],
				Why:         fmt.Sprintf("placeholder %s/%s, replicas %d; none of its pods is on a node of the pool", o.Namespace, o.Name, policy.ReplicasOf(o.Deployment)),
			}
			g.limit(g.Placeholder)
			groups = append(groups, g)
		}
	}
	return groups
}
