package sizing

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
)

var (
	// recommended is a placeholder that Workspaces start beside.
	recommended = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	// least is what the shipped pre-pull container asks for: a smaller placeholder would not count as less.
	least     = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	oneDevice = *resource.NewQuantity(1, resource.DecimalSI)
	// cpuAndMemory are what every placeholder holds, and every Workspace needs.
	cpuAndMemory = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
)

// Plan is the placeholder to use in a pool for one mode, and what it leaves for Workspaces.
type Plan struct {
	Mode config.Mode `json:"mode"`
	// Works tells that nothing speaks against the mode; else Faults say what does.
	Works  bool     `json:"works"`
	Faults []string `json:"faults"`
	// Request of the placeholder, as requests and limits; nil where there is none that would do.
	Request corev1.ResourceList `json:"request,omitempty"`
	// LimitedBy names, by resource, the template that keeps the request below the recommended one.
	LimitedBy map[corev1.ResourceName]string `json:"limitedBy,omitempty"`
	// Rooms are what is left for Workspaces, by shape.
	Rooms []Room `json:"rooms"`
	// Templates say where their default Workspaces find room.
	Templates []TemplateRoom `json:"templates"`
}

// Room is what a node of a shape has for Workspaces.
type Room struct {
	Shape string `json:"shape"`
	// Coexist is the largest Workspace that runs beside the placeholder; nil: none does. Preempt is the largest that can
	// take the place of the placeholder, on a node that has no other Workspace.
	Coexist corev1.ResourceList `json:"coexist,omitempty"`
	Preempt corev1.ResourceList `json:"preempt,omitempty"`
}

// TemplateRoom is where the default Workspace of a template finds room, by the names of the shapes: beside the
// placeholder, and in its place.
type TemplateRoom struct {
	Name       string   `json:"name"`
	CoexistsOn []string `json:"coexistsOn"`
	PreemptsOn []string `json:"preemptsOn"`
}

// planner makes the plans of one pool.
type planner struct {
	shapes    []*Shape
	templates []Template
	// devices are the accelerators that placeholders hold; hasDevices tells that the pool is meant to have some.
	devices    []corev1.ResourceName
	hasDevices bool
}

// Plans are one for each mode of a pool with the shapes, at least one, and the templates. isAccelerator tells the pool's
// accelerators among resources; nil: it has none.
func Plans(shapes []*Shape, templates []Template, isAccelerator func(corev1.ResourceName) bool) []*Plan {
	p := &planner{shapes: shapes, templates: templates, hasDevices: isAccelerator != nil}
	if p.hasDevices {
		p.devices = p.devicesToHold(isAccelerator)
	}
	return []*Plan{p.coexist(), p.exclusive()}
}

// devicesToHold are the accelerators that templates ask for, else all that nodes have. One device may go by several
// names, such as aws.amazon.com/neuron and neuroncore: to hold it by two would ask for it twice.
func (p *planner) devicesToHold(isAccelerator func(corev1.ResourceName) bool) []corev1.ResourceName {
	asked, shown := map[corev1.ResourceName]bool{}, map[corev1.ResourceName]bool{}
	for _, shape := range p.shapes {
		for name := range shape.Offers {
			shown[name] = isAccelerator(name)
		}
	}
	for _, template := range p.templates {
		for name, quantity := range template.Default {
			asked[name] = shown[name] && quantity.Sign() > 0
		}
	}
	for _, names := range []map[corev1.ResourceName]bool{asked, shown} {
		maps.DeleteFunc(names, func(_ corev1.ResourceName, held bool) bool { return !held })
		if len(names) > 0 {
			return slices.Sorted(maps.Keys(names))
		}
	}
	return nil
}

// smallest is the shape that has least of the resource available; nil where none tells.
func (p *planner) smallest(name corev1.ResourceName) (*Shape, resource.Quantity) {
	var found *Shape
	for _, shape := range p.shapes {
		offer, known := shape.Offers[name]
		if known && (found == nil || offer.Available.Cmp(found.Offers[name].Available) < 0) {
			found = shape
		}
	}
	if found == nil {
		return nil, resource.Quantity{}
	}
	return found, found.Offers[name].Available.DeepCopy()
}

// coexist is the recommended placeholder, or the largest smaller one beside which all default Workspaces have room.
func (p *planner) coexist() *Plan {
	plan, request := p.newPlan(config.Coexist), corev1.ResourceList{}
	device, crowded := p.deviceToShare()
	for _, name := range cpuAndMemory {
		want, template, shape := p.mostBesideAll(name, crowded)
		switch {
		case want.Cmp(least[name]) >= 0:
		case want.Sign() <= 0 && template == "":
			plan.nothingLeft(shape, name, p.shapes)
			request = nil
		default:
			plan.fault("%s leaves %s %s for a placeholder%s, which takes %s at least",
				shape.NameAmong(p.shapes), name, want.String(), besideA(template), quantityOf(least, name))
			request = nil
		}
		if request == nil {
			break
		}
		request[name] = want
		if template != "" {
			plan.LimitedBy[name] = template
		}
	}
	plan.Request = request
	switch {
	case !p.hasDevices:
	case device == "":
		p.noDevice(plan)
	case request != nil:
		request[device] = oneDevice
	}
	for _, shape := range crowded {
		plan.fault("%s has only one %s, which the placeholder holds: no Workspace can coexist; use Exclusive", shape.NameAmong(p.shapes), device)
	}
	p.finish(plan, crowded)
	return plan
}

// mostBesideAll is the recommended quantity, or the smaller one that the default Workspaces leave, and which template on
// which shape leaves no more. A template does not count where it has no room even on an empty node, or on crowded shapes.
func (p *planner) mostBesideAll(name corev1.ResourceName, crowded []*Shape) (most resource.Quantity, template string, where *Shape) {
	most = recommended[name].DeepCopy()
	for _, shape := range p.shapes {
		offer, known := shape.Offers[name]
		if !known {
			continue
		}
		if offer.Available.Cmp(most) < 0 {
			most, template, where = offer.Available.DeepCopy(), "", shape
		}
		for _, t := range p.templates {
			left := offer.Available.DeepCopy()
			left.Sub(t.Default[name])
			if left.Cmp(most) < 0 && Fits(t.Default, shape.Available()) && !slices.Contains(crowded, shape) {
				most, template, where = left, t.Name, shape
			}
		}
	}
	return most, template, where
}

func besideA(template string) string {
	if template == "" {
		return ""
	}
	return " beside a Workspace of " + template
}

func quantityOf(list corev1.ResourceList, name corev1.ResourceName) string {
	quantity := list[name]
	return quantity.String()
}

// deviceToShare is the accelerator that there is most of, of which a placeholder holds one; empty: there is none. On
// crowded shapes that is the only one.
func (p *planner) deviceToShare() (device corev1.ResourceName, crowded []*Shape) {
	var most resource.Quantity
	for _, name := range p.devices {
		if _, available := p.smallest(name); available.Cmp(most) > 0 {
			device, most = name, available
		}
	}
	for _, shape := range p.shapes {
		if offer, known := shape.Offers[device]; known && offer.Available.Cmp(oneDevice) <= 0 {
			crowded = append(crowded, shape)
		}
	}
	return device, crowded
}

// exclusive is a placeholder that fills the smallest node.
func (p *planner) exclusive() *Plan {
	plan := p.newPlan(config.Exclusive)
	request, names := corev1.ResourceList{}, p.held()
	for _, name := range names {
		shape, available := p.smallest(name)
		switch {
		case shape == nil: // nothing tells of it
		case available.Sign() > 0:
			request[name] = available
		case slices.Contains(cpuAndMemory, name):
			plan.nothingLeft(shape, name, p.shapes)
			request = nil
		}
		if request == nil {
			break
		}
	}
	plan.Request = request
	if request != nil && p.hasDevices && !slices.ContainsFunc(p.devices, func(name corev1.ResourceName) bool { _, held := request[name]; return held }) {
		p.noDevice(plan)
	}
	p.finish(plan, nil)
	return plan
}

// held are the resources that a placeholder may hold: cpu, memory, accelerators, and what templates ask for. With these
// taken nothing can use the rest of a node.
func (p *planner) held() []corev1.ResourceName {
	names := slices.Concat(cpuAndMemory, p.devices)
	for _, template := range p.templates {
		names = slices.AppendSeq(names, maps.Keys(template.Default))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p *planner) newPlan(mode config.Mode) *Plan {
	return &Plan{Mode: mode, LimitedBy: map[corev1.ResourceName]string{}, Faults: []string{}, Rooms: []Room{}, Templates: []TemplateRoom{}}
}

func (plan *Plan) fault(format string, args ...any) {
	plan.Faults = append(plan.Faults, fmt.Sprintf(format, args...))
}
