package chart

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// plan chooses how the placeholder shares its node, where the pool says nothing of it, and gives what fits; nil: not known.
func (d *deriving) plan() *sizing.Plan {
	if len(d.sizes.Shapes) == 0 {
		d.remark(d.path+".sizing", "%s%s. Once one runs, run this again; or write what a node offers into sizing.allocatable", Decide, d.sizes.Unknown)
		return nil
	}
	var templates []sizing.Template
	for _, ref := range d.pool.Templates {
		if template := d.facts.Templates.Get(ref.String()); template != nil {
			templates = append(templates, sizing.TemplateOf(template))
		}
	}
	var accelerators func(corev1.ResourceName) bool
	if len(d.pool.Accelerators) > 0 {
		offers := d.evaluator.Pools().Get(d.pool.Name).Offers
		accelerators = func(name corev1.ResourceName) bool { return offers([]string{string(name)}) }
	}
	plans := sizing.Plans(d.sizes.Shapes, templates, accelerators)
	for _, plan := range plans {
		if len(d.there()) > 0 && plan.Mode == d.pool.Sizing.Mode || len(d.there()) == 0 && plan.Works && plan.Request != nil {
			return plan
		}
	}
	d.remark(d.path+".sizing", "%sneither mode works here: %s", Decide, strings.Join(plans[0].Faults, "; "))
	return plans[0]
}

// fresh is a placeholder for a pool that has none.
func (d *deriving) fresh(plan *sizing.Plan) Placeholder {
	path := d.path + ".placeholders[0]"
	p := Placeholder{Images: d.images(path)}
	d.exempt(Prefix+d.pool.Name, p.Images, path)
	if len(p.Images) == 0 {
		d.remark(path, "%sno image is pulled ahead: name the Workspaces' in images", Decide)
	}
	if plan != nil && plan.Request != nil {
		d.pool.Sizing.Mode = plan.Mode
		d.remark(d.path+".sizing", "%s", map[config.Mode]string{
			config.Coexist: "Workspaces start beside the placeholder", config.Exclusive: "a Workspace takes the placeholder's place: there is no room beside it",
		}[plan.Mode])
		p.Requests = plan.Request
		return p
	}
	p.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	if len(d.pool.Accelerators) > 0 {
		p.Requests[d.device()] = resource.MustParse("1")
	}
	d.remark(path+".requests", "%sa usual size; no node tells whether it fits", Decide)
	return p
}

// device is the accelerator that a placeholder holds where no node tells: what the templates ask for, else what limits name,
// else the one that the glob means.
func (d *deriving) device() corev1.ResourceName {
	offers := d.evaluator.Pools().Get(d.pool.Name).Offers
	lists := []corev1.ResourceList{}
	for _, ref := range d.pool.Templates {
		if template := d.facts.Templates.Get(ref.String()); template != nil {
			lists = append(lists, sizing.TemplateOf(template).Default)
		}
	}
	for _, name := range d.pool.NodePools {
		if np := d.facts.NodePools.Get(name); np != nil {
			lists = append(lists, np.Limits)
		}
	}
	for _, list := range lists {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if offers([]string{string(name)}) {
				return name
			}
		}
	}
	vendor, _, _ := strings.Cut(d.pool.Accelerators[0], "*")
	if strings.HasSuffix(vendor, "/") {
		return corev1.ResourceName(vendor + "gpu")
	}
	return corev1.ResourceName(vendor)
}

// most is how many nodes the limits of the pool's NodePools allow; 0: nothing tells.
func (d *deriving) most() int {
	sum := 0
	for _, name := range d.pool.NodePools {
		np := d.facts.NodePools.Get(name)
		if np == nil {
			return 0
		}
		fewest := math.MaxInt
		for resourceName, limit := range np.Limits {
			if resourceName == "nodes" {
				fewest = min(fewest, int(limit.Value()))
			}
			for _, shape := range d.sizes.Shapes {
				if offer, known := shape.Offers[resourceName]; known && offer.Allocatable.Sign() > 0 {
					fewest = min(fewest, int(limit.AsApproximateFloat64()/offer.Allocatable.AsApproximateFloat64()))
				}
			}
		}
		if fewest == math.MaxInt {
			return 0
		}
		sum += fewest
	}
	return sum
}

// scale says how many placeholders there are: as now, else by CPA with bounds from the NodePools' limits.
func (d *deriving) scale(placeholders []Placeholder, there []*appsv1.Deployment, scalings []policy.Scaling) {
	path := d.path + ".placeholders[0]"
	if d.pool.Size != nil && d.pool.Size.Mode == config.Apply {
		for i := range placeholders {
			placeholders[i].Replicas = nil // warmpool sets them
		}
		return
	}
	most := d.most()
	switch {
	case len(scalings) == 1 && len(placeholders) == 1 && scalings[0].Linear != nil:
		d.keep(&placeholders[0], scalings[0], most)
		return
	case len(scalings) > 0:
		for _, s := range scalings {
			d.remark(path, "%sCPA %s scales it now, and what it goes by is not written here (%s)", Decide, s.Name, cmp.Or(s.Problem, "a ladder, or several placeholders"))
		}
	}
	if len(there) == 0 {
		d.propose(&placeholders[0], most)
		return
	}
	for i := range placeholders {
		if *placeholders[i].Replicas == 1 {
			d.remark(fmt.Sprintf("%s.placeholders[%d].replicas", d.path, i), "%swith one, nothing is warm while it is refilled; 2 or more is better", Decide)
		}
	}
}

// propose says how many there are of a placeholder that is new; most is how many nodes the limits allow, 0 where they do not say.
func (d *deriving) propose(p *Placeholder, most int) {
	path := d.path + ".placeholders[0]"
	switch {
	case len(d.pool.NodePools) == 0:
		nodes := 0
		for _, shape := range d.sizes.Shapes {
			nodes += shape.Nodes
		}
		p.Replicas = new(int32(max(1, min(2, nodes))))
		d.remark(path+".replicas", "%sof the %d nodes that there are", Decide, nodes)
	case most > 0 && most < 4:
		p.Replicas = new(int32(min(most, 2)))
		d.remark(path+".replicas", "a fixed number: the limits of %s allow %s", strings.Join(d.pool.NodePools, ", "), phrase.Count(most, "node"))
	default:
		ratio := sizing.Ratios(d.inUse(), 0)[1]
		p.Scaling = &Scaling{NodesPerReplica: ratio.NodesPerReplica, Min: ratio.Min, Max: max(ratio.Max, 4)}
		d.remark(path+".scaling", "%s", ratio.Why)
		if most > 0 {
			p.Scaling.Max = min(p.Scaling.Max, most/2)
			d.remark(path+".scaling", "max: half of %s at most, which the limits of %s allow", phrase.Count(most, "node"), strings.Join(d.pool.NodePools, ", "))
		} else {
			d.remark(path+".scaling", "%smax: %s has no limit that bounds its nodes", Decide, strings.Join(d.pool.NodePools, ", "))
		}
	}
}

// keep takes over the parameters of the CPA that scales the placeholder now, but for those that cannot work.
func (d *deriving) keep(p *Placeholder, s policy.Scaling, most int) {
	path := d.path + ".placeholders[0].scaling"
	p.Replicas = nil
	p.Scaling = &Scaling{NodesPerReplica: s.Linear.NodesPerReplica, CoresPerReplica: s.Linear.CoresPerReplica, Min: s.Linear.Min, Max: s.Linear.Max}
	if !s.Linear.PreventSinglePointFailure {
		p.Scaling.PreventSinglePointFailure = new(false)
	}
	d.remark(path, "as CPA %s has it", s.Name)
	name := cmp.Or(p.Name, Prefix+d.pool.Name)
	if own := d.cfg.Placeholders.Namespace + "/spaces-overprovisioning-cpa-" + strings.TrimPrefix(name, Prefix); s.Name != own {
		namespace, old, _ := strings.Cut(s.Name, "/")
		d.remark(path, "changes: the chart's CPA is %s. Before helm install:\n"+deleteDeployment, own, namespace, old)
	}
	cores := 0.0
	for _, shape := range d.sizes.Shapes {
		cores = max(cores, sizing.Cores(shape.Offers[corev1.ResourceCPU].Allocatable))
	}
	unbounded := *s.Linear
	unbounded.Min, unbounded.Max = 0, 0
	if forOne, runaway := unbounded.FixedPoint(1, cores); p.Scaling.NodesPerReplica > 1 && p.Scaling.CoresPerReplica > 0 && cores > 0 && (runaway || forOne > policy.MostForOne) {
		d.remark(path, "changes: coresPerReplica %g is hardly above the %g cores of a node, so that each placeholder calls for the next: left out", p.Scaling.CoresPerReplica, cores)
		p.Scaling.CoresPerReplica = 0
	}
	if p.Scaling.Max == 0 {
		p.Scaling.Max = max(p.Scaling.Min, 2, most/2)
		d.remark(path, "changes: max, which it has none of")
	}
}

// inUse are the pool's nodes that no placeholder holds.
func (d *deriving) inUse() int {
	nodes := 0
	for _, shape := range d.sizes.Shapes {
		if shape.Source == sizing.FromNodes {
			nodes += shape.Nodes
		}
	}
	return nodes
}
