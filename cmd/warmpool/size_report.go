package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

// sizeReport is what size prints in JSON and YAML. Quantities are exact, as strings.
type sizeReport struct {
	Pools []*poolReport `json:"pools"`
	// namespace is that of the placeholders.
	namespace string
}

// poolReport is one pool. Missing and Fix say why it could not be sized; Shapes and what follows are then absent.
type poolReport struct {
	Name    string        `json:"name"`
	Mode    config.Mode   `json:"mode"`
	Source  sizing.Source `json:"source,omitempty"`
	Missing string        `json:"missing,omitempty"`
	Fix     string        `json:"fix,omitempty"`
	// Problems are what could not be counted.
	Problems     []string           `json:"problems"`
	Shapes       []*shapeReport     `json:"shapes,omitempty"`
	Templates    []sizing.Template  `json:"templates,omitempty"`
	Placeholders []*sizing.Plan     `json:"placeholders,omitempty"`
	Autoscaling  *autoscalingReport `json:"autoscaling,omitempty"`
}

type shapeReport struct {
	Name         string        `json:"name"`
	InstanceType string        `json:"instanceType"`
	Nodes        int           `json:"nodes"`
	Resources    []offerReport `json:"resources"`
}

// offerReport is a resource of a shape; Node is the one that has the smallest allocatable.
type offerReport struct {
	Resource    corev1.ResourceName `json:"resource"`
	Allocatable resource.Quantity   `json:"allocatable"`
	DaemonSets  resource.Quantity   `json:"daemonSets"`
	Available   resource.Quantity   `json:"available"`
	Node        string              `json:"node"`
	Largest     []daemonReport      `json:"largest"`
}

type daemonReport struct {
	Name    string            `json:"name"`
	Request resource.Quantity `json:"request"`
}

// autoscalingReport suggests ratios for CPA. OtherNodes are the pool's nodes that no placeholder holds, CoresPerNode the
// allocatable cpu of the largest type.
type autoscalingReport struct {
	OtherNodes   int               `json:"otherNodes"`
	CoresPerNode resource.Quantity `json:"coresPerNode"`
	Ratios       []ratioReport     `json:"ratios"`
	// Configured are the CPAs that scale the pool's placeholders.
	Configured []scalingReport `json:"configured,omitempty"`
}

// scalingReport is a CPA as it is configured; Problem says why its parameters are not known. A ladder has neither.
type scalingReport struct {
	Name      string         `json:"name"`
	Linear    *sizing.Linear `json:"linear,omitempty"`
	Replicas  int            `json:"replicas,omitempty"`
	FromAbove int            `json:"replicasFromAbove,omitempty"`
	Problem   string         `json:"problem,omitempty"`
}

// ratioReport is one suggestion; Replicas is where the number of placeholders settles coming from few, FromAbove coming from
// many.
type ratioReport struct {
	Linear    sizing.Linear `json:"linear"`
	Replicas  int           `json:"replicas"`
	FromAbove int           `json:"replicasFromAbove"`
	Meaning   string        `json:"meaning"`
}

// reportPool sizes a pool of which placeholders hold so many nodes.
func reportPool(evaluator *policy.Evaluator, pool *config.Pool, sizes *sizing.PoolSizes, held int, scalings []policy.Scaling) *poolReport {
	report := &poolReport{Name: pool.Name, Mode: pool.Sizing.Mode, Problems: append(append([]string{}, sizes.Problems...), sizes.NotCounted...)}
	if len(sizes.Shapes) == 0 {
		report.Missing = sizes.Unknown
		report.Fix = "Start one node of the pool, or write what a node offers (kubectl get node NODE -o jsonpath='{.status.allocatable}') into the pool's sizing.allocatable."
		report.Problems = append(report.Problems, evaluator.Pools().Get(pool.Name).Unknown...)
		return report
	}
	report.Source = sizes.Shapes[0].Source
	for _, shape := range sizes.Shapes {
		name := shape.NameAmong(sizes.Shapes)
		report.Shapes = append(report.Shapes, reportShape(shape, name))
		if unsized := shape.Unsized(); len(unsized) > 0 {
			report.Problems = append(report.Problems, fmt.Sprintf("DaemonSets without requests count as 0 on %s: %s", name, daemonNames(unsized)))
		}
	}
	report.addTemplates(evaluator, pool)
	report.Placeholders = sizing.Plans(sizes.Shapes, report.Templates, acceleratorsOf(evaluator, pool))
	report.addAutoscaling(sizes.Shapes, held, scalings)
	return report
}

func reportShape(shape *sizing.Shape, name string) *shapeReport {
	report := &shapeReport{Name: name, InstanceType: shape.InstanceType, Nodes: shape.Nodes}
	for _, resourceName := range slices.SortedFunc(maps.Keys(shape.Offers), cpuAndMemoryFirst) {
		offer := shape.Offers[resourceName]
		row := offerReport{
			Resource: resourceName, Allocatable: offer.Allocatable, DaemonSets: offer.Daemons, Available: offer.Available,
			Node: offer.Node, Largest: []daemonReport{},
		}
		for _, d := range shape.Largest(resourceName) {
			if resourceName == corev1.ResourcePods {
				break // each has one
			}
			row.Largest = append(row.Largest, daemonReport{Name: d.Name, Request: d.Request[resourceName]})
		}
		report.Resources = append(report.Resources, row)
	}
	return report
}

func cpuAndMemoryFirst(a, b corev1.ResourceName) int {
	rank := func(name corev1.ResourceName) int {
		switch name {
		case corev1.ResourceCPU:
			return 0
		case corev1.ResourceMemory:
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func daemonNames(daemons []*sizing.Daemon) string {
	var names []string
	for _, d := range daemons {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}

// addTemplates reads what Workspaces of the pool's templates ask for, and notes what is not known of them.
func (r *poolReport) addTemplates(evaluator *policy.Evaluator, pool *config.Pool) {
	facts := evaluator.Facts().Templates
	for _, ref := range pool.Templates {
		name := ref.Namespace + "/" + ref.Name
		switch template := facts.Get(name); {
		case template != nil:
			r.Templates = append(r.Templates, sizing.TemplateOf(template))
		case !facts.Known():
			r.Problems = append(r.Problems, fmt.Sprintf("WorkspaceTemplate %s is not counted: %s", name, facts.Reason()))
		default:
			r.Problems = append(r.Problems, fmt.Sprintf("WorkspaceTemplate %s is not counted: %s", name, cmp.Or(facts.Malformed(name), "it does not exist")))
		}
	}
	if len(pool.Templates) == 0 {
		r.Problems = append(r.Problems, "the pool lists no templates: nothing tells what Workspaces must have room for")
	}
}

func acceleratorsOf(evaluator *policy.Evaluator, pool *config.Pool) func(corev1.ResourceName) bool {
	if len(pool.Accelerators) == 0 {
		return nil
	}
	offers := evaluator.Pools().Get(pool.Name).Offers
	return func(name corev1.ResourceName) bool { return offers([]string{string(name)}) }
}

func (r *poolReport) addAutoscaling(shapes []*sizing.Shape, held int, scalings []policy.Scaling) {
	a := &autoscalingReport{Ratios: []ratioReport{}}
	for _, shape := range shapes {
		if shape.Source == sizing.FromNodes {
			a.OtherNodes += shape.Nodes
		}
		if offer, known := shape.Offers[corev1.ResourceCPU]; known && offer.Allocatable.Cmp(a.CoresPerNode) > 0 {
			a.CoresPerNode = offer.Allocatable
		}
	}
	a.OtherNodes = max(a.OtherNodes-held, 0)
	cores := sizing.Cores(a.CoresPerNode)
	for _, ratio := range sizing.Ratios(a.OtherNodes, cores) {
		a.Ratios = append(a.Ratios, ratioReport{Linear: ratio.Linear, Replicas: ratio.Replicas, FromAbove: ratio.FromAbove, Meaning: ratio.Why})
	}
	for _, s := range scalings {
		row := scalingReport{Name: s.Name, Linear: s.Linear, Problem: s.Problem}
		if s.Linear != nil {
			row.Replicas, _ = s.Linear.FixedPoint(a.OtherNodes, cores)
			row.FromAbove = s.Linear.FromAbove(a.OtherNodes, cores)
		}
		a.Configured = append(a.Configured, row)
	}
	r.Autoscaling = a
}

// configured is the plan of the pool's configured mode; nil for a pool that could not be sized.
func (r *poolReport) configured() *sizing.Plan {
	for _, plan := range r.Placeholders {
		if plan.Mode == r.Mode {
			return plan
		}
	}
	return nil
}
