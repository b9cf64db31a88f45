package sizing

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/cluster"
)

// group is the nodes of one pool.
type group struct {
	poolLabel string // key of the label that marks the pool's nodes
	nodes     map[string]*member
	kinds     map[string]*kind
	taints    map[corev1.Taint]int
	labels    map[string]*labelCounts // by the value of the pool's label
}

// member is a node as it was counted.
type member struct {
	node        *corev1.Node
	description string // that the classifier knows its class by
	kind        string // key in group.kinds; empty for a node that does not count
}

// kind is the nodes of one Shape.
type kind struct {
	class        *class
	instanceType string
	nodes        int
	// allocatable orders the nodes by quantity, then name, for each resource.
	allocatable map[corev1.ResourceName]*iradix.Tree[*corev1.Node]
	variants    map[string]*variant
	problems    map[string]string // by node and resource
	shape       *Shape            // nil: to be made anew
}

// variant is the labels of a type that some nodes of a kind have in common: a pool of two NodePools has two.
type variant struct {
	labels map[string]string
	nodes  int
}

func newGroup(poolLabel string) *group {
	return &group{poolLabel: poolLabel, nodes: map[string]*member{}, kinds: map[string]*kind{}, taints: map[corev1.Taint]int{}, labels: map[string]*labelCounts{}}
}

// counts tells whether a node's numbers can be gone by: it is ready, stays, and says what it offers. Without any Ready
// condition, as in a manifest, it counts.
func counts(node *corev1.Node) bool {
	return cluster.MayBeReady(node) && node.DeletionTimestamp == nil && len(node.Status.Allocatable) > 0
}

func (g *group) add(m *member, class *class) {
	g.nodes[m.node.Name] = m
	g.countLabels(m.node, 1)
	for _, taint := range m.node.Spec.Taints {
		taint.TimeAdded = nil
		g.taints[taint]++
	}
	if class == nil {
		return
	}
	instanceType := m.node.Labels[corev1.LabelInstanceTypeStable]
	m.kind = instanceType + "\x00" + class.key
	k := g.kinds[m.kind]
	if k == nil {
		k = &kind{
			class: class, instanceType: instanceType, allocatable: map[corev1.ResourceName]*iradix.Tree[*corev1.Node]{},
			variants: map[string]*variant{}, problems: map[string]string{},
		}
		g.kinds[m.kind] = k
	}
	k.add(m.node, g.poolLabel)
}

func (g *group) remove(m *member) {
	delete(g.nodes, m.node.Name)
	g.countLabels(m.node, -1)
	for _, taint := range m.node.Spec.Taints {
		taint.TimeAdded = nil
		if g.taints[taint]--; g.taints[taint] == 0 {
			delete(g.taints, taint)
		}
	}
	if k := g.kinds[m.kind]; k != nil {
		k.remove(m.node, g.poolLabel)
		if k.nodes == 0 {
			delete(g.kinds, m.kind)
		}
	}
}

func (g *group) sortedTaints() []corev1.Taint {
	return slices.SortedFunc(maps.Keys(g.taints), func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
}

// sizes are the group's shapes; problems are those of the facts as a whole. karpenter tells that it starts the nodes.
func (g *group) sizes(source Source, problems []string, karpenter bool) *PoolSizes {
	sizes := &PoolSizes{Problems: slices.Clone(problems)}
	for _, key := range slices.Sorted(maps.Keys(g.kinds)) {
		k := g.kinds[key]
		if k.shape == nil {
			k.shape = k.make(source, g.poolLabel)
		}
		sizes.Shapes = append(sizes.Shapes, k.shape)
		sizes.NotCounted = append(sizes.NotCounted, k.shape.notCounted(karpenter)...)
		sizes.Problems = slices.AppendSeq(sizes.Problems, maps.Values(k.problems))
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

func (k *kind) add(node *corev1.Node, poolLabel string) {
	k.shape = nil
	k.nodes++
	key, labels := typeLabels(node, poolLabel)
	if k.variants[key] == nil {
		k.variants[key] = &variant{labels: labels}
	}
	k.variants[key].nodes++
	for name, quantity := range node.Status.Allocatable {
		key, ok := order(quantity, node.Name)
		if !ok {
			k.problems[node.Name+"\x00"+string(name)] = fmt.Sprintf("node %s says that %s of %s is allocatable, which is left out", node.Name, quantity.String(), name)
			continue
		}
		tree := k.allocatable[name]
		if tree == nil {
			tree = iradix.New[*corev1.Node]()
		}
		k.allocatable[name], _, _ = tree.Insert(key, node)
	}
}

func (k *kind) remove(node *corev1.Node, poolLabel string) {
	k.shape = nil
	k.nodes--
	key, _ := typeLabels(node, poolLabel)
	if k.variants[key].nodes--; k.variants[key].nodes == 0 {
		delete(k.variants, key)
	}
	for name, quantity := range node.Status.Allocatable {
		delete(k.problems, node.Name+"\x00"+string(name))
		key, ok := order(quantity, node.Name)
		if !ok {
			continue
		}
		k.allocatable[name], _, _ = k.allocatable[name].Delete(key)
		if k.allocatable[name].Len() == 0 {
			delete(k.allocatable, name)
		}
	}
}

// absurd is more than any machine has of anything, and little enough to count in thousandths.
var absurd = *resource.NewQuantity(1<<53, resource.DecimalSI)

// order gives a key that sorts by quantity, then by node. Negative and absurd quantities have none.
func order(quantity resource.Quantity, node string) ([]byte, bool) {
	if quantity.Sign() < 0 || quantity.Cmp(absurd) >= 0 {
		return nil, false
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(quantity.MilliValue())), node...), true //nolint:gosec // not negative
}

// smallest is the node that has least of the resource. A device plugin that starts anew says 0 for a while: as long as
// other nodes of the type have some of a device, that says nothing of the type.
func (k *kind) smallest(name corev1.ResourceName) *corev1.Node {
	tree := k.allocatable[name]
	_, node, _ := tree.Root().Minimum()
	if quantity := node.Status.Allocatable[name]; !quantity.IsZero() || !strings.Contains(string(name), "/") {
		return node
	}
	some := tree.Root().Iterator()
	some.SeekLowerBound(binary.BigEndian.AppendUint64(nil, 1))
	if _, other, ok := some.Next(); ok {
		return other
	}
	return node
}

func (k *kind) make(source Source, poolLabel string) *Shape {
	daemons, tooLarge, overhead := k.class.daemons, k.tooLarge(), k.class.overhead
	if len(tooLarge) > 0 {
		daemons = slices.DeleteFunc(slices.Clone(daemons), func(d *Daemon) bool {
			return slices.ContainsFunc(tooLarge, func(t TooLarge) bool { return t.Daemon == d })
		})
		overhead = sumOf(daemons)
	}
	shape := &Shape{
		InstanceType: k.instanceType, Source: source, Nodes: k.nodes,
		Offers: map[corev1.ResourceName]Offer{}, Daemons: daemons, TooLarge: tooLarge, poolLabel: poolLabel,
	}
	if source == FromConfig {
		shape.Nodes = 0
	}
	for name := range k.allocatable {
		node := k.smallest(name)
		allocatable, taken := counted(name, node.Status.Allocatable[name]), overhead[name]
		available := allocatable.DeepCopy()
		available.Sub(taken)
		shape.Offers[name] = Offer{Allocatable: allocatable, Daemons: taken, Available: available, Node: node.Name}
	}
	for _, key := range slices.Sorted(maps.Keys(k.variants)) {
		shape.labels = append(shape.labels, k.variants[key].labels)
	}
	return shape
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
