package sizing

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Source says where the numbers of a shape come from, best first.
type Source string

// The sources of a shape.
const (
	FromNodes      Source = "node"
	FromNodeClaims Source = "NodeClaim"
	FromLastSeen   Source = "last seen node"
	FromConfig     Source = "configured allocatable"
)

// Shape is what the nodes of a pool of one instance type and with the same DaemonSets offer. Immutable.
type Shape struct {
	// InstanceType is the label node.kubernetes.io/instance-type; empty where nodes have none.
	InstanceType string
	// Source of the numbers, and how many nodes they are of; 0 for configured ones.
	Source Source
	Nodes  int
	// Offers are by resource; one that is not there is unknown, not 0.
	Offers map[corev1.ResourceName]Offer
	// Daemons are the DaemonSets that run on these nodes.
	Daemons []*Daemon
	// TooLarge are DaemonSets that are meant for these nodes and fit on none: they take no room and are not among Daemons.
	// Karpenter counts them all the same, and starts no such node.
	TooLarge []TooLarge

	poolLabel string              // key of the label that marks the pool's nodes
	labels    []map[string]string // the different sets of labels of the type and of the pool that the nodes have
}

// Offer is what a shape has of one resource.
type Offer struct {
	// Allocatable is the smallest among the shape's nodes, Daemons what their DaemonSets take, Available the difference:
	// the largest request that fits an otherwise empty node. It may be negative.
	Allocatable, Daemons, Available resource.Quantity
	// Node has the smallest allocatable; the first by name of several.
	Node string
}

// Shortfall is a resource of which a request asks for more than a shape has.
type Shortfall struct {
	Resource  corev1.ResourceName
	Requested resource.Quantity
	Offer
	// Largest are the DaemonSets that take most of the resource, at most three, largest first.
	Largest []*Daemon
}

// Shortfalls are the resources, by name, of which the request exceeds what is available; unknown ones are left out.
// Equal is enough.
func (s *Shape) Shortfalls(request corev1.ResourceList) []Shortfall {
	var short []Shortfall
	for name, quantity := range request {
		offer, known := s.Offers[name]
		if known && quantity.Sign() > 0 && quantity.Cmp(offer.Available) > 0 {
			short = append(short, Shortfall{Resource: name, Requested: quantity, Offer: offer, Largest: s.Largest(name)})
		}
	}
	slices.SortFunc(short, func(a, b Shortfall) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
	return short
}

// Unknown are the resources, by name, that the request asks for and the shape's nodes do not name.
func (s *Shape) Unknown(request corev1.ResourceList) []corev1.ResourceName {
	var unknown []corev1.ResourceName
	for name, quantity := range request {
		if _, known := s.Offers[name]; !known && quantity.Sign() > 0 {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Unsized are the DaemonSets, by name, that request neither cpu nor memory and so count as 0.
func (s *Shape) Unsized() []*Daemon {
	return slices.DeleteFunc(slices.Clone(s.Daemons), func(d *Daemon) bool {
		cpu, memory := d.Request[corev1.ResourceCPU], d.Request[corev1.ResourceMemory]
		return !cpu.IsZero() || !memory.IsZero()
	})
}

// Largest are the DaemonSets that take most of the resource, at most three, largest first.
func (s *Shape) Largest(name corev1.ResourceName) []*Daemon { return largest(s.Daemons, name, 3) }

// Available is what an otherwise empty node of the shape has for pods, by resource.
func (s *Shape) Available() corev1.ResourceList { return s.Beside(nil) }

// Beside is what is left on a node of the shape beside the request, by resource; it may be negative.
func (s *Shape) Beside(request corev1.ResourceList) corev1.ResourceList {
	left := corev1.ResourceList{}
	for name, offer := range s.Offers {
		quantity := offer.Available.DeepCopy()
		quantity.Sub(request[name])
		left[name] = quantity
	}
	return left
}

// Fits tells whether the request is at most what there is, in every resource that is known of.
func Fits(request, room corev1.ResourceList) bool {
	for name, quantity := range request {
		if have, known := room[name]; known && quantity.Sign() > 0 && quantity.Cmp(have) > 0 {
			return false
		}
	}
	return true
}

// String names the shape in messages.
func (s *Shape) String() string {
	if s.InstanceType == "" {
		return "nodes without instance type"
	}
	return s.InstanceType
}

// Hosts tells whether the spec's node selection lets a pod onto nodes of the shape, as far as labels of the type and of
// the pool tell: zones, names and the like differ from node to node and exclude nothing here.
func (s *Shape) Hosts(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(s.labels, func(labels map[string]string) bool { return s.matches(labels, spec) })
}

func (s *Shape) matches(labels map[string]string, spec *corev1.PodSpec) bool {
	for key, value := range spec.NodeSelector {
		if has, ok := labels[key]; s.isOfType(key) && (!ok || has != value) {
			return false
		}
	}
	required := cluster.RequiredNodes(spec)
	return required == nil || slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool { return s.meets(labels, &term) })
}

func (s *Shape) meets(labels map[string]string, term *corev1.NodeSelectorTerm) bool {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return false // a term that asks for nothing selects nothing
	}
	var open []corev1.NodeSelectorRequirement
	for _, r := range term.MatchExpressions {
		if s.isOfType(r.Key) && !hasNamed(labels, &r) {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: open}}})
	return err == nil && selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
}

// hasNamed tells whether the requirement is met by a value that it names, as nearly all are. Others take a selector, which
// takes far longer to make than to ask.
func hasNamed(labels map[string]string, r *corev1.NodeSelectorRequirement) bool {
	has, ok := labels[r.Key]
	return ok && r.Operator == corev1.NodeSelectorOpIn && slices.Contains(r.Values, has)
}

// isOfType tells whether the shape's nodes have the label in common, or lack it. Of configured numbers nothing but the
// pool's label is known.
func (s *Shape) isOfType(key string) bool {
	return key == s.poolLabel || s.Source != FromConfig && isTypeLabel(key)
}

func isTypeLabel(key string) bool {
	switch key {
	case corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable, config.NodePoolLabel:
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/instance-")
}

// NameAmong names the shape in messages that are about several: as String does, with a node where nodes of one type
// differ in their DaemonSets.
func (s *Shape) NameAmong(shapes []*Shape) string {
	switch {
	case s.Source == FromConfig:
		return "nodes as configured"
	case slices.ContainsFunc(shapes, func(other *Shape) bool { return s != other && s.InstanceType == other.InstanceType }):
		return s.String() + " (as " + s.anyNode() + ")"
	default:
		return s.String()
	}
}

// anyNode is the first by name of the nodes that gave the shape its numbers.
func (s *Shape) anyNode() string {
	first := ""
	for _, offer := range s.Offers {
		if first == "" || offer.Node < first {
			first = offer.Node
		}
	}
	return first
}
