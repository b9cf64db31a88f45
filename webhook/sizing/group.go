package sizing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/cluster"
)

// counts tells whether a node's numbers can be gone by: it is ready, stays, and says what it offers. Without any Ready
// condition, as in a manifest, it counts.
func counts(node *corev1.Node) bool {
	return cluster.MayBeReady(node) && node.DeletionTimestamp == nil && len(node.Status.Allocatable) > 0
}

// kind is the nodes of one Shape, sorted by name.
type kind struct {
	class        *class
	instanceType string
	nodes        []*member
}

// kindsOf are the kinds of nodes that count, by instance type and DaemonSets.
func kindsOf(members []*member) []*kind {
	byKey := map[string]*kind{}
	for _, m := range members {
		if m.class == nil {
			continue
		}
		instanceType := m.node.Labels[corev1.LabelInstanceTypeStable]
		key := instanceType + "\x00" + m.class.key
		if byKey[key] == nil {
			byKey[key] = &kind{class: m.class, instanceType: instanceType}
		}
		byKey[key].nodes = append(byKey[key].nodes, m)
	}
	var kinds []*kind
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		kinds = append(kinds, byKey[key])
	}
	return kinds
}

// taintsOf are the taints of the nodes, sorted.
func taintsOf(members []*member) []corev1.Taint {
	taints := map[corev1.Taint]bool{}
	for _, m := range members {
		for _, taint := range m.node.Spec.Taints {
			taint.TimeAdded = nil
			taints[taint] = true
		}
	}
	return slices.SortedFunc(maps.Keys(taints), func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
}

// sizesFrom are the shapes of the kinds; problems are those of the facts as a whole. karpenter tells that it starts the nodes.
func sizesFrom(kinds []*kind, source Source, poolLabel string, problems []string, karpenter bool) *PoolSizes {
	sizes := &PoolSizes{Problems: slices.Clone(problems)}
	for _, k := range kinds {
		shape, problems := k.shape(source, poolLabel)
		sizes.Shapes = append(sizes.Shapes, shape)
		sizes.NotCounted = append(sizes.NotCounted, shape.notCounted(karpenter)...)
		sizes.Problems = append(sizes.Problems, problems...)
		for _, d := range k.class.daemons {
			sizes.Problems = append(sizes.Problems, d.problems...)
		}
	}
	slices.Sort(sizes.Problems)
	sizes.Problems = slices.Compact(sizes.Problems)
	slices.Sort(sizes.NotCounted)
	sizes.NotCounted = slices.Compact(sizes.NotCounted)
	return sizes
}

// offered is the nodes that have least and most of a resource, the first by name of several; least leaves out those that
// have none of a device of which others have some: a device plugin that starts anew says 0 for a while.
type offered struct{ least, most *corev1.Node }

// absurd is more than any machine has of anything, and little enough to count in thousandths.
var absurd = *resource.NewQuantity(1<<53, resource.DecimalSI)

// offers looks through the nodes. problems are quantities that are left out: negative and absurd ones.
func (k *kind) offers() (all map[corev1.ResourceName]*offered, problems []string) {
	all = map[corev1.ResourceName]*offered{}
	for _, m := range k.nodes {
		for name, quantity := range m.node.Status.Allocatable {
			if quantity.Sign() < 0 || quantity.Cmp(absurd) >= 0 {
				problems = append(problems, fmt.Sprintf("node %s says that %s of %s is allocatable, which is left out", m.node.Name, quantity.String(), name))
				continue
			}
			o := all[name]
			if o == nil {
				all[name] = &offered{m.node, m.node}
				continue
			}
			if isLess(name, &quantity, o.least) {
				o.least = m.node
			}
			if most := o.most.Status.Allocatable[name]; quantity.Cmp(most) > 0 {
				o.most = m.node
			}
		}
	}
	return all, problems
}

// isLess tells whether the quantity is less than that of the node so far.
func isLess(name corev1.ResourceName, quantity *resource.Quantity, least *corev1.Node) bool {
	so := least.Status.Allocatable[name]
	if isDevice := strings.Contains(string(name), "/"); isDevice && quantity.IsZero() != so.IsZero() {
		return so.IsZero()
	}
	return cmp.Less(quantity.MilliValue(), so.MilliValue())
}

func (k *kind) shape(source Source, poolLabel string) (shape *Shape, problems []string) {
	offers, problems := k.offers()
	daemons, tooLarge, overhead := k.class.daemons, tooLarge(k.class.daemons, offers), k.class.overhead
	if len(tooLarge) > 0 {
		daemons = slices.DeleteFunc(slices.Clone(daemons), func(d *Daemon) bool {
			return slices.ContainsFunc(tooLarge, func(t TooLarge) bool { return t.Daemon == d })
		})
		overhead = sumOf(daemons)
	}
	shape = &Shape{
		InstanceType: k.instanceType, Source: source, Nodes: len(k.nodes),
		Offers: map[corev1.ResourceName]Offer{}, Daemons: daemons, TooLarge: tooLarge, poolLabel: poolLabel,
	}
	if source == FromConfig {
		shape.Nodes = 0
	}
	for name, o := range offers {
		allocatable, taken := counted(name, o.least.Status.Allocatable[name]), overhead[name]
		available := allocatable.DeepCopy()
		available.Sub(taken)
		shape.Offers[name] = Offer{Allocatable: allocatable, Daemons: taken, Available: available, Node: o.least.Name}
	}
	// A pool of two NodePools has two variants of the labels of a type.
	variants := map[string]map[string]string{}
	for _, m := range k.nodes {
		variants[m.labelKey] = m.labels
	}
	for _, key := range slices.Sorted(maps.Keys(variants)) {
		shape.labels = append(shape.labels, variants[key])
	}
	return shape, problems
}

// typeLabels are the labels that the node has in common with others of its type, and a key that tells them from others.
func typeLabels(node *corev1.Node, poolLabel string) (key string, labels map[string]string) {
	labels = map[string]string{}
	for name, value := range node.Labels {
		if name == poolLabel || isTypeLabel(name) {
			labels[name] = value
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name + "=" + labels[name] + "\x00")
	}
	return b.String(), labels
}
