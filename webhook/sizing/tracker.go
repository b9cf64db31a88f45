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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Sizes are the shapes of every pool at one moment. Immutable.
type Sizes struct{ byPool map[string]*PoolSizes }

// PoolSizes are the shapes of one pool.
type PoolSizes struct {
	// Shapes by instance type, then by DaemonSets; none where nothing tells, and Unknown then says why.
	Shapes  []*Shape
	Unknown string
	// Problems are facts that could not be read and how they were counted, sorted.
	Problems []string
	// Taints are those seen on the pool's nodes, sorted.
	Taints []corev1.Taint
}

// Pool gives the sizes of the pool with the name; they are empty for one that is not configured.
func (s *Sizes) Pool(name string) *PoolSizes {
	if sizes := s.byPool[name]; sizes != nil {
		return sizes
	}
	return &PoolSizes{Unknown: "the pool is not configured"}
}

// Tracker keeps Sizes up to date. It is used by one goroutine at a time.
type Tracker struct {
	config     *config.WarmPoolConfiguration
	facts      *cluster.Snapshot
	classifier *classifier
	poolOf     map[[2]string]string // label key and value → pool name
	labelKeys  []string
	pools      map[string]*group // of all nodes of a pool, by pool name
}

// group is the nodes of one pool.
type group struct {
	nodes  map[string]*member
	kinds  map[string]*kind
	taints map[corev1.Taint]int
	sizes  *PoolSizes // nil: to be made anew
}

// member is a node as it was counted.
type member struct {
	node  *corev1.Node
	class *class
	kind  string // key in group.kinds; empty for a node that does not count
}

// kind is the nodes of one Shape.
type kind struct {
	class *class
	nodes map[string]*corev1.Node
	// allocatable orders the nodes by quantity, then name, for each resource.
	allocatable map[corev1.ResourceName]*iradix.Tree[*corev1.Node]
	problems    map[string]string // by node and resource
	shape       *Shape            // nil: to be made anew
}

// NewTracker makes a Tracker for one configuration.
func NewTracker(cfg *config.WarmPoolConfiguration) *Tracker {
	t := &Tracker{config: cfg, poolOf: map[[2]string]string{}}
	keys := map[string]bool{}
	for i := range cfg.Pools {
		key, values := cfg.Pools[i].Label()
		keys[key] = true
		for _, value := range values {
			t.poolOf[[2]string{key, value}] = cfg.Pools[i].Name
		}
	}
	t.labelKeys = slices.Sorted(maps.Keys(keys))
	return t
}

// Update takes a Snapshot in. After a change of nodes alone it costs in proportion to the nodes that changed; a change
// of what DaemonSets ask for, of LimitRanges or RuntimeClasses makes it count every node anew.
func (t *Tracker) Update(facts *cluster.Snapshot) *Sizes {
	changed, incremental := []string(nil), false
	if t.facts != nil && unchanged(facts.DaemonSets, t.facts.DaemonSets) && unchanged(facts.LimitRanges, t.facts.LimitRanges) && unchanged(facts.RuntimeClasses, t.facts.RuntimeClasses) {
		changed, incremental = facts.Nodes.ChangedSince(t.facts.Nodes)
	}
	if !incremental {
		t.reset(facts)
		changed = changed[:0]
		for name := range facts.Nodes.All() {
			changed = append(changed, name)
		}
	}
	for _, name := range changed {
		t.remove(name)
		if node := facts.Nodes.Get(name); node != nil {
			t.add(node)
		}
	}
	t.facts = facts
	return t.sizes()
}

func unchanged[T any](now, before cluster.Facts[T]) bool {
	keys, ok := now.ChangedSince(before)
	return ok && len(keys) == 0
}

func (t *Tracker) reset(facts *cluster.Snapshot) {
	t.classifier = newClassifier(facts)
	t.pools = make(map[string]*group, len(t.config.Pools))
	for i := range t.config.Pools {
		t.pools[t.config.Pools[i].Name] = &group{nodes: map[string]*member{}, kinds: map[string]*kind{}, taints: map[corev1.Taint]int{}}
	}
}

func (t *Tracker) poolOfNode(node *corev1.Node) *group {
	for _, key := range t.labelKeys {
		if value, ok := node.Labels[key]; ok {
			if pool, ok := t.poolOf[[2]string{key, value}]; ok {
				return t.pools[pool]
			}
		}
	}
	return nil
}

func (t *Tracker) add(node *corev1.Node) {
	g := t.poolOfNode(node)
	if g == nil {
		return
	}
	g.sizes = nil
	m := &member{node: node}
	g.nodes[node.Name] = m
	for _, taint := range node.Spec.Taints {
		taint.TimeAdded = nil
		g.taints[taint]++
	}
	if !counts(node) {
		return
	}
	m.class = t.classifier.classOf(node)
	m.kind = node.Labels[corev1.LabelInstanceTypeStable] + "\x00" + m.class.key
	k := g.kinds[m.kind]
	if k == nil {
		k = &kind{class: m.class, nodes: map[string]*corev1.Node{}, allocatable: map[corev1.ResourceName]*iradix.Tree[*corev1.Node]{}, problems: map[string]string{}}
		g.kinds[m.kind] = k
	}
	k.add(node)
}

// remove takes the node out of the pool that it was counted in.
func (t *Tracker) remove(name string) {
	for _, g := range t.pools {
		m := g.nodes[name]
		if m == nil {
			continue
		}
		g.sizes = nil
		delete(g.nodes, name)
		for _, taint := range m.node.Spec.Taints {
			taint.TimeAdded = nil
			if g.taints[taint]--; g.taints[taint] == 0 {
				delete(g.taints, taint)
			}
		}
		if k := g.kinds[m.kind]; k != nil {
			k.remove(m.node)
			if len(k.nodes) == 0 {
				delete(g.kinds, m.kind)
			}
		}
	}
}

// counts tells whether a node's numbers can be gone by: it is ready, stays, and says what it offers. Without any Ready
// condition, as in a manifest, it counts.
func counts(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return false
		}
	}
	return node.DeletionTimestamp == nil && len(node.Status.Allocatable) > 0
}

func (k *kind) add(node *corev1.Node) {
	k.shape = nil
	k.nodes[node.Name] = node
	for name, quantity := range node.Status.Allocatable {
		key, ok := order(quantity, name, node.Name)
		if !ok {
			k.problems[node.Name+"\x00"+string(name)] = fmt.Sprintf("node %s has %s allocatable of %s, which is left out", node.Name, quantity.String(), name)
			continue
		}
		tree := k.allocatable[name]
		if tree == nil {
			tree = iradix.New[*corev1.Node]()
		}
		k.allocatable[name], _, _ = tree.Insert(key, node)
	}
}

func (k *kind) remove(node *corev1.Node) {
	k.shape = nil
	delete(k.nodes, node.Name)
	for name, quantity := range node.Status.Allocatable {
		delete(k.problems, node.Name+"\x00"+string(name))
		key, ok := order(quantity, name, node.Name)
		if !ok {
			continue
		}
		k.allocatable[name], _, _ = k.allocatable[name].Delete(key)
		if k.allocatable[name].Len() == 0 {
			delete(k.allocatable, name)
		}
	}
}

// order gives a key that sorts by quantity, then by node. Negative quantities and such as no machine has have none.
func order(quantity resource.Quantity, name corev1.ResourceName, node string) ([]byte, bool) {
	value := quantity.Value()
	if name == corev1.ResourceCPU && value < 1<<40 {
		value = quantity.MilliValue()
	}
	if quantity.Sign() < 0 || value >= 1<<62 {
		return nil, false
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(value)), node...), true
}

func (t *Tracker) sizes() *Sizes {
	all := &Sizes{byPool: make(map[string]*PoolSizes, len(t.config.Pools))}
	for i := range t.config.Pools {
		pool := &t.config.Pools[i]
		g := t.pools[pool.Name]
		if len(g.kinds) == 0 {
			all.byPool[pool.Name] = t.withoutNodes(pool, g)
			continue
		}
		if g.sizes == nil {
			g.sizes = g.make()
		}
		all.byPool[pool.Name] = g.sizes
	}
	return all
}

func (g *group) make() *PoolSizes {
	sizes := &PoolSizes{Taints: g.sortedTaints()}
	for _, key := range slices.Sorted(maps.Keys(g.kinds)) {
		k := g.kinds[key]
		if k.shape == nil {
			k.shape = k.make(FromNodes)
		}
		sizes.Shapes = append(sizes.Shapes, k.shape)
		sizes.Problems = append(sizes.Problems, k.class.problems...)
		sizes.Problems = append(sizes.Problems, slices.Collect(maps.Values(k.problems))...)
	}
	slices.Sort(sizes.Problems)
	sizes.Problems = slices.Compact(sizes.Problems)
	return sizes
}

func (g *group) sortedTaints() []corev1.Taint {
	return slices.SortedFunc(maps.Keys(g.taints), func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
}

func (k *kind) make(source Source) *Shape {
	shape := &Shape{Source: source, Nodes: len(k.nodes), Offers: map[corev1.ResourceName]Offer{}, Daemons: k.class.daemons, labels: map[string]string{}}
	first := ""
	for name, tree := range k.allocatable {
		_, node, _ := tree.Root().Minimum()
		allocatable := node.Status.Allocatable[name]
		available := allocatable.DeepCopy()
		taken := k.class.overhead[name]
		available.Sub(taken)
		shape.Offers[name] = Offer{Allocatable: allocatable, Daemons: taken, Available: available, Node: node.Name}
		if first == "" || node.Name < first {
			first = node.Name
		}
	}
	if node := k.nodes[first]; node != nil {
		shape.InstanceType = node.Labels[corev1.LabelInstanceTypeStable]
		for key, value := range node.Labels {
			if isTypeLabel(key) {
				shape.labels[key] = value
			}
		}
	}
	return shape
}

// withoutNodes finds other sources of a pool's numbers: NodeClaims, nodes that were seen, the configuration.
func (t *Tracker) withoutNodes(pool *config.Pool, g *group) *PoolSizes {
	for _, try := range []struct {
		source Source
		nodes  []*corev1.Node
	}{
		{FromNodeClaims, t.claimed(pool)},
		{FromLastSeen, t.lastSeen(pool)},
		{FromConfig, t.configured(pool)},
	} {
		stand := &group{nodes: map[string]*member{}, kinds: map[string]*kind{}, taints: g.taints}
		sub := &Tracker{classifier: t.classifier, pools: map[string]*group{pool.Name: stand}, poolOf: t.poolOf, labelKeys: t.labelKeys}
		for _, node := range try.nodes {
			sub.add(node)
		}
		if len(stand.kinds) == 0 {
			continue
		}
		for _, k := range stand.kinds {
			k.shape = k.make(try.source)
		}
		return stand.make()
	}
	return &PoolSizes{
		Unknown: fmt.Sprintf("no node of pool %s has been seen, and sizing.allocatable is not configured", pool.Name),
		Taints:  g.sortedTaints(),
	}
}

func (t *Tracker) claimed(pool *config.Pool) []*corev1.Node {
	var nodes []*corev1.Node
	for name, claim := range t.facts.NodeClaims.All() {
		if !claim.Deleting {
			nodes = append(nodes, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: claim.Labels},
				Spec:       corev1.NodeSpec{Taints: claim.Taints},
				Status:     corev1.NodeStatus{Allocatable: claim.Allocatable},
			})
		}
	}
	return nodes
}

func (t *Tracker) lastSeen(pool *config.Pool) []*corev1.Node {
	var nodes []*corev1.Node
	for key, node := range t.facts.LastSeen.All() {
		if strings.HasPrefix(key, pool.Name+"/") {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// configured makes up a node of the configured numbers, with labels and taints of the pool's first NodePool.
func (t *Tracker) configured(pool *config.Pool) []*corev1.Node {
	if len(pool.Sizing.Allocatable) == 0 {
		return nil
	}
	key, values := pool.Label()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "configured", Labels: map[string]string{}},
		Status:     corev1.NodeStatus{Allocatable: pool.Sizing.Allocatable},
	}
	if np := t.facts.NodePools.Get(values[0]); np != nil && key == "karpenter.sh/nodepool" {
		maps.Copy(node.Labels, np.Labels)
		node.Spec.Taints = np.Taints
	}
	node.Labels[key] = values[0]
	return []*corev1.Node{node}
}
