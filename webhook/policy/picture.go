package policy

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
	"warmpool.sh/webhook/sizing"
)

// Picture is a pool as a report draws it: plain numbers, with nothing left to look up.
type Picture struct {
	Pool *config.Pool
	// Resource is what nodes are drawn to scale of: of what a node has Available, pods take most of it. Demand is that of a
	// default Workspace, in mode Coexist beside a placeholder; both are 0 where nothing tells, and Resource is cpu then.
	Resource          corev1.ResourceName
	Demand, Available resource.Quantity
	// Nodes are groups of equal nodes, by state, the largest group first.
	Nodes []NodeGroup
	// WaitingPlaceholders and WaitingWorkspaces are pods of the pool that no node has.
	WaitingPlaceholders, WaitingWorkspaces int
	// Images are those that templates ask for, then those that placeholders pull and no template asks for.
	Images []ImagePicture
	Curves []Curve
	// Unknown are facts that are missing, one clause each.
	Unknown []string
}

// painter is an Audit with what the pictures look up for each node.
type painter struct {
	*Audit
	sources map[string][]prepull.Source
	// placeholdersOn and workspacesOn are the pods of each node, by its name.
	placeholdersOn, workspacesOn map[string][]*corev1.Pod
	waiting                      map[string]*[2]int // pods without node, by pool: placeholders and Workspaces
}

// Pictures are the pools in the order of the configuration.
func (e *Evaluator) Pictures() []*Picture {
	p := &painter{
		Audit: e.audit(), sources: e.sources, waiting: map[string]*[2]int{},
		placeholdersOn: map[string][]*corev1.Pod{}, workspacesOn: map[string][]*corev1.Pod{},
	}
	for _, pool := range p.pools.All() {
		p.waiting[pool.Config.Name] = &[2]int{}
	}
	for _, o := range p.placeholders {
		for _, pod := range p.pods(o) {
			p.put(p.placeholdersOn, pod, o.PoolName(), 0)
		}
	}
	for _, o := range p.workspaces {
		p.put(p.workspacesOn, o.Pod, o.PoolName(), 1)
	}
	var pictures []*Picture
	for _, pool := range p.pools.All() {
		pictures = append(pictures, p.paint(pool))
	}
	return pictures
}

func (p *painter) put(on map[string][]*corev1.Pod, pod *corev1.Pod, pool string, kind int) {
	if pod.Spec.NodeName != "" {
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
	} else if waiting := p.waiting[pool]; waiting != nil {
		waiting[kind]++
	}
}

func (p *painter) paint(pool *placement.Pool) *Picture {
	name := pool.Config.Name
	sizes := p.sizes.Pool(name)
	picture := &Picture{Pool: pool.Config, Unknown: slices.Clone(pool.Unknown)}
	for _, fact := range []struct {
		known        bool
		kind, reason string
	}{{p.facts.Nodes.Known(), "Nodes", p.facts.Nodes.Reason()}, {p.facts.Pods.Known(), "Pods", p.facts.Pods.Reason()}} {
		if !fact.known {
			picture.Unknown = append(picture.Unknown, fact.kind+": "+fact.reason)
		}
	}
	picture.Unknown = append(append(picture.Unknown, sizes.Problems...), sizes.NotCounted...)
	picture.WaitingPlaceholders, picture.WaitingWorkspaces = p.waiting[name][0], p.waiting[name][1]
	picture.Resource, picture.Demand, picture.Available = p.scarcest(pool, sizes.Shapes)
	picture.Nodes = p.nodeGroups(pool, picture.Resource)
	picture.Images = p.imagesOf(pool)
	for _, s := range p.autoscalers {
		if s.poolName() == name {
			picture.Curves = append(picture.Curves, p.curve(s))
		}
	}
	return picture
}

// scarcest is the resource of which pods take most of a node: it runs out first.
func (p *painter) scarcest(pool *placement.Pool, shapes []*sizing.Shape) (name corev1.ResourceName, need, have resource.Quantity) {
	name = corev1.ResourceCPU
	demand, share := p.demand(pool), 0.0
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
func (p *painter) demand(pool *placement.Pool) corev1.ResourceList {
	placeholders, workspaces := corev1.ResourceList{}, corev1.ResourceList{}
	for _, o := range p.of(pool.Config.Name) {
		raise(placeholders, o.request())
	}
	for _, ref := range pool.Config.Templates {
		if template := p.facts.Templates.Get(ref.String()); template != nil {
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

// ImagePicture is an image that placeholders of a pool pull or should pull.
type ImagePicture struct {
	// Image is the complete reference; empty where Problem says why it is not known.
	Image, Problem string
	// Template asks for the image, as NAMESPACE/NAME; empty: none does.
	Template string
	// PulledBy and MissingIn are placeholders that pull it and that do not, as NAMESPACE/NAME.
	PulledBy, MissingIn []string
}

func (p *painter) imagesOf(pool *placement.Pool) []ImagePicture {
	var images []ImagePicture
	placeholders := p.of(pool.Config.Name)
	sources := p.sources[pool.Config.Name]
	for _, source := range sources {
		image := ImagePicture{Image: source.Image, Problem: source.Problem, Template: source.Template.String()}
		for _, o := range placeholders {
			if pulls(prepull.Present(o.Spec), source.Image) {
				image.PulledBy = append(image.PulledBy, o.Namespace+"/"+o.Name)
			} else {
				image.MissingIn = append(image.MissingIn, o.Namespace+"/"+o.Name)
			}
		}
		images = append(images, image)
	}
	for _, o := range placeholders {
		for _, pulled := range prepull.Present(o.Spec) {
			if !slices.ContainsFunc(sources, func(s prepull.Source) bool { return pulls([]string{pulled}, s.Image) }) {
				images = append(images, ImagePicture{Image: pulled, PulledBy: []string{o.Namespace + "/" + o.Name}})
			}
		}
	}
	return images
}

func pulls(pulled []string, image string) bool {
	return len(prepull.Missing([]string{image}, pulled)) == 0
}
