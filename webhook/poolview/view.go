// Package poolview shows a pool as a reader of a report sees it: its nodes and what takes them, the images that placeholders
// pull, and how its CPA counts.
package poolview

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

// View is a pool in plain numbers, with nothing left to look up.
type View struct {
	Pool *config.Pool
	// Resource is what nodes are drawn to scale of: of what a node has Available, pods take most of it. Demand is that of a
	// default Workspace, in mode Coexist beside a placeholder; both are 0 where nothing is known, and Resource is cpu then.
	Resource          corev1.ResourceName
	Demand, Available resource.Quantity
	// Nodes are groups of equal nodes, by state, the largest group first.
	Nodes []NodeGroup
	// WaitingPlaceholders and WaitingWorkspaces are pods of the pool that no node has.
	WaitingPlaceholders, WaitingWorkspaces int
	// Images are those that templates ask for, then those that placeholders pull and no template asks for.
	Images []Image
	Curves []Curve
	// Unknown are facts that are missing, one clause each.
	Unknown []string
}

// viewer is an Audit with what the views look up for each node.
type viewer struct {
	*policy.Audit
	// placeholdersOn and workspacesOn are the pods of each node, by its name; those without one are under "".
	placeholdersOn, workspacesOn map[string][]pooled
}

// pooled is a pod with the name of its pool.
type pooled struct {
	*corev1.Pod
	pool string
}

// Of are the views of all pools, in the order of the configuration.
func Of(e *policy.Evaluator) []*View {
	v := &viewer{Audit: policy.NewAudit(e), placeholdersOn: map[string][]pooled{}, workspacesOn: map[string][]pooled{}}
	for _, o := range v.Placeholders {
		for _, pod := range v.Pods(o) {
			v.placeholdersOn[pod.Spec.NodeName] = append(v.placeholdersOn[pod.Spec.NodeName], pooled{pod, o.PoolName()})
		}
	}
	for _, o := range v.Workspaces {
		v.workspacesOn[o.Spec.NodeName] = append(v.workspacesOn[o.Spec.NodeName], pooled{o.Pod, o.PoolName()})
	}
	var views []*View
	for _, pool := range e.Pools().All() {
		views = append(views, v.view(pool))
	}
	return views
}

func (v *viewer) view(pool *placement.Pool) *View {
	name := pool.Config.Name
	sizes := v.Sizes().Pool(name)
	view := &View{Pool: pool.Config, Unknown: slices.Clone(pool.Unknown)}
	if nodes := v.Facts().Nodes; !nodes.Known() {
		view.Unknown = append(view.Unknown, "Nodes: "+nodes.Reason())
	}
	if pods := v.Facts().Pods; !pods.Known() {
		view.Unknown = append(view.Unknown, "Pods: "+pods.Reason())
	}
	view.Unknown = slices.Concat(view.Unknown, sizes.Problems, sizes.NotCounted)
	view.WaitingPlaceholders, view.WaitingWorkspaces = waiting(v.placeholdersOn, name), waiting(v.workspacesOn, name)
	view.Resource, view.Demand, view.Available = v.scarcest(pool, sizes.Shapes)
	view.Nodes = v.nodeGroups(pool, view.Resource)
	view.Images = v.images(pool)
	for _, s := range v.CPAs {
		if s.PoolName() == name {
			view.Curves = append(view.Curves, v.curve(s))
		}
	}
	return view
}

func waiting(on map[string][]pooled, pool string) int {
	count := 0
	for _, pod := range on[""] {
		if pod.pool == pool {
			count++
		}
	}
	return count
}

// scarcest is the resource of which pods take most of a node: it runs out first.
func (v *viewer) scarcest(pool *placement.Pool, shapes []*sizing.Shape) (name corev1.ResourceName, need, have resource.Quantity) {
	name = corev1.ResourceCPU
	demand, share := v.demand(pool), 0.0
	for _, candidate := range slices.Sorted(maps.Keys(demand)) {
		for _, shape := range shapes {
			offer, known := shape.Offers[candidate]
			if !known || candidate == corev1.ResourcePods || offer.Available.Sign() <= 0 {
				continue
			}
			asked := demand[candidate]
			// By a clear margin: cpu and memory are often asked for in proportion to the node, and cpu reads better.
			if part := asked.AsApproximateFloat64() / offer.Available.AsApproximateFloat64(); part > share*1.05 {
				name, share, need, have = candidate, part, asked, offer.Available
			}
		}
	}
	return name, need, have
}

// demand is what the largest default Workspace of the pool's templates asks for, with the largest placeholder where both
// share a node; without templates it is the placeholder's alone.
func (v *viewer) demand(pool *placement.Pool) corev1.ResourceList {
	placeholders, workspaces := corev1.ResourceList{}, corev1.ResourceList{}
	for _, o := range v.Of(pool.Config.Name) {
		raise(placeholders, o.Request())
	}
	for _, ref := range pool.Config.Templates {
		if template := v.Facts().Templates.Get(ref.String()); template != nil {
			raise(workspaces, sizing.TemplateOf(template).Default)
		}
	}
	if pool.Config.Sizing.Mode == config.Exclusive && len(workspaces) > 0 {
		return workspaces
	}
	for name, quantity := range workspaces {
		sum := placeholders[name].DeepCopy()
		sum.Add(quantity)
		placeholders[name] = sum
	}
	return placeholders
}

// raise makes each quantity at least that of the other list.
func raise(list, other corev1.ResourceList) {
	for name, quantity := range other {
		if have, known := list[name]; !known || quantity.Cmp(have) > 0 {
			list[name] = quantity
		}
	}
}
