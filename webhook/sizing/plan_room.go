package sizing

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
)

// finish says what the request leaves for Workspaces, and judges. On crowded shapes no Workspace coexists, which has
// been said.
func (p *planner) finish(plan *Plan, crowded []*Shape) {
	request := maps.Clone(plan.Request)
	if request != nil {
		request[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	for _, shape := range p.shapes {
		plan.Rooms = append(plan.Rooms, p.room(shape, request))
	}
	for _, template := range p.templates {
		plan.Templates = append(plan.Templates, p.templateRoom(template, request))
		for _, shape := range p.shapes {
			if request == nil || slices.Contains(crowded, shape) {
				continue
			}
			if fault := ModeFault(plan.Mode, template, shape, request); fault != "" {
				plan.Faults = append(plan.Faults, fault)
			}
		}
	}
	for _, room := range plan.Rooms {
		switch {
		case len(plan.Faults) > 0: // the reason is known
		case room.Preempt == nil:
			plan.fault("%s has no room for a Workspace beside its DaemonSets", room.Shape)
		case room.Coexist == nil && plan.Mode == config.Coexist:
			plan.fault("%s has no room for a Workspace beside the placeholder", room.Shape)
		}
	}
	plan.Works = len(plan.Faults) == 0
}

// room is what a node of the shape has for Workspaces, of what they or the placeholder ask for.
func (p *planner) room(shape *Shape, request corev1.ResourceList) Room {
	named := corev1.ResourceList{}
	for _, name := range p.held() {
		named[name] = resource.Quantity{}
	}
	room := Room{Shape: shape.NameAmong(p.shapes)}
	if available := shape.Available(); p.hosts(available) {
		room.Preempt = only(available, named)
	}
	if beside := shape.Beside(request); request != nil && p.hosts(beside) {
		room.Coexist = only(beside, named)
	}
	return room
}

// hosts tells whether some Workspace can do with what is left: with some cpu, some memory, a pod, and one of the
// accelerators where the pool has any.
func (p *planner) hosts(left corev1.ResourceList) bool {
	some := func(name corev1.ResourceName) bool {
		quantity, known := left[name]
		return !known || quantity.Sign() > 0
	}
	return some(corev1.ResourceCPU) && some(corev1.ResourceMemory) && some(corev1.ResourcePods) &&
		(!p.hasDevices || slices.ContainsFunc(p.devices, some))
}

func (p *planner) templateRoom(template Template, request corev1.ResourceList) TemplateRoom {
	room := TemplateRoom{Name: template.Name, CoexistsOn: []string{}, PreemptsOn: []string{}}
	if len(template.Default) == 0 {
		return room
	}
	for _, shape := range p.shapes {
		if request != nil && Fits(template.Default, shape.Beside(request)) {
			room.CoexistsOn = append(room.CoexistsOn, shape.NameAmong(p.shapes))
		}
		if Fits(template.Default, shape.Available()) {
			room.PreemptsOn = append(room.PreemptsOn, shape.NameAmong(p.shapes))
		}
	}
	return room
}

// nothingLeft says which DaemonSets leave nothing of a resource.
func (plan *Plan) nothingLeft(shape *Shape, name corev1.ResourceName, shapes []*Shape) {
	plan.fault("%s has no %s left beside its DaemonSets%s", shape.NameAmong(shapes), name, shape.takers(name))
}

// noDevice says why no accelerator is free: DaemonSets hold what there is, or there is none.
func (p *planner) noDevice(plan *Plan) {
	plan.Request = nil
	for _, name := range p.devices {
		shape, _ := p.smallest(name)
		if offer := shape.Offers[name]; offer.Allocatable.Sign() > 0 {
			plan.nothingLeft(shape, name, p.shapes)
			return
		}
	}
	plan.fault("no node shows an accelerator of the pool that is free: start its device plugin, or name the accelerator in sizing.allocatable")
}
