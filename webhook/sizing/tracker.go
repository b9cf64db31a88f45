package sizing

import (
	"maps"
	"slices"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Sizes are the shapes of every pool at one moment. Immutable.
type Sizes struct {
	byPool    map[string]*PoolSizes
	hostnames *iradix.Tree[*corev1.Node]
}

// PoolSizes are the shapes of one pool.
type PoolSizes struct {
	// Shapes by instance type, then by DaemonSets; none where nothing tells, and Unknown then says why.
	Shapes  []*Shape
	Unknown string
	// Problems are facts that could not be read and how they were counted, sorted.
	Problems []string
	// NotCounted are the DaemonSets that are too large for the nodes to run there, in words, sorted.
	NotCounted []string
	// Taints are those seen on the pool's nodes, sorted.
	Taints []corev1.Taint
	// Labels are those of the pool's nodes, by the value of the label that marks them.
	Labels map[string]cluster.NodeLabels
}

// Seen tells that the pool has nodes, or NodeClaims that announce some.
func (p *PoolSizes) Seen() bool {
	return slices.ContainsFunc(p.Shapes, func(s *Shape) bool { return s.Source == FromNodes || s.Source == FromNodeClaims })
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
	nodeTaints map[string][]corev1.Taint // configured, by pool name
	// nodes and claims are the nodes that there are and that NodeClaims announce, by pool name.
	nodes, claims map[string]*group
	// made are the sizes of the pools in which nothing changed.
	made map[string]*PoolSizes
	// hostnames are all nodes by their hostnameKey.
	hostnames *iradix.Tree[*corev1.Node]
}

// NewTracker makes a Tracker for one configuration.
func NewTracker(cfg *config.WarmPoolConfiguration) *Tracker {
	t := &Tracker{config: cfg, poolOf: map[[2]string]string{}, nodeTaints: map[string][]corev1.Taint{}}
	keys := map[string]bool{}
	for i := range cfg.Pools {
		pool := &cfg.Pools[i]
		key, values := pool.Label()
		keys[key] = true
		for _, value := range values {
			t.poolOf[[2]string{key, value}] = pool.Name
		}
		t.nodeTaints[pool.Name] = pool.Taints()
	}
	t.labelKeys = slices.Sorted(maps.Keys(keys))
	return t
}

// Update takes a Snapshot in. After a change of nodes and NodeClaims it costs in proportion to those that changed; a
// change of what DaemonSets ask for, with their LimitRanges and RuntimeClasses, makes it count every node anew.
func (t *Tracker) Update(facts *cluster.Snapshot) *Sizes {
	before := t.facts
	if before == nil || t.classifier.outdated(facts, before) {
		before = &cluster.Snapshot{}
		t.classifier, t.made = newClassifier(facts), map[string]*PoolSizes{}
		t.nodes, t.claims = t.newGroups(), t.newGroups()
		t.hostnames = iradix.New[*corev1.Node]()
	}
	if changed(facts.LastSeen, before.LastSeen, nil) || changed(facts.NodePools, before.NodePools, nil) {
		clear(t.made)
	}
	t.facts = facts
	index := t.hostnames.Txn()
	refresh(facts.Nodes, before.Nodes,
		func(name string) {
			if node := before.Nodes.Get(name); node != nil {
				index.Delete(hostnameKey(node))
			}
			t.remove(t.nodes, name)
		},
		func(_ string, node *corev1.Node) {
			index.Insert(hostnameKey(node), node)
			t.add(t.nodes, node, nil)
		})
	t.hostnames = index.Commit()
	refresh(facts.NodeClaims, before.NodeClaims,
		func(name string) { t.remove(t.claims, name) },
		func(name string, claim *cluster.NodeClaim) {
			if !claim.Deleting {
				t.add(t.claims, nodeOf(name, claim), t.nodeTaints)
			}
		})
	return t.sizes()
}

// refresh takes out what changed and puts in what there is of it now.
func refresh[T any](now, before cluster.Facts[T], remove func(key string), add func(key string, object *T)) {
	if keys, ok := now.ChangedSince(before); ok {
		for _, key := range keys {
			remove(key)
			if object := now.Get(key); object != nil {
				add(key, object)
			}
		}
		return
	}
	for key := range before.All() {
		remove(key)
	}
	for key, object := range now.All() {
		add(key, object)
	}
}

func (t *Tracker) newGroups() map[string]*group {
	groups := make(map[string]*group, len(t.config.Pools))
	for i := range t.config.Pools {
		key, _ := t.config.Pools[i].Label()
		groups[t.config.Pools[i].Name] = newGroup(key)
	}
	return groups
}

// poolsOf are the pools, at most one for each label, whose label the node has.
func (t *Tracker) poolsOf(node *corev1.Node) []string {
	var pools []string
	for _, key := range t.labelKeys {
		value, has := node.Labels[key]
		if pool, ok := t.poolOf[[2]string{key, value}]; has && ok && !slices.Contains(pools, pool) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// add counts the node in its pools, in each with the taints that it will get there.
func (t *Tracker) add(groups map[string]*group, node *corev1.Node, taints map[string][]corev1.Taint) {
	for _, pool := range t.poolsOf(node) {
		delete(t.made, pool)
		m := &member{node: withTaints(node, taints[pool])}
		var class *class
		if counts(node) {
			m.description = t.classifier.describe(m.node)
			class = t.classifier.take(m.node, m.description)
		}
		groups[pool].add(m, class)
	}
}

// remove takes the node out of the pools that it was counted in.
func (t *Tracker) remove(groups map[string]*group, name string) {
	for pool, g := range groups {
		m := g.nodes[name]
		if m == nil {
			continue
		}
		delete(t.made, pool)
		g.remove(m)
		if m.kind != "" {
			t.classifier.release(m.description)
		}
	}
}

func (t *Tracker) sizes() *Sizes {
	all := &Sizes{byPool: make(map[string]*PoolSizes, len(t.config.Pools)), hostnames: t.hostnames}
	for i := range t.config.Pools {
		pool := &t.config.Pools[i]
		if t.made[pool.Name] == nil {
			t.made[pool.Name] = t.sizesOf(pool)
		}
		all.byPool[pool.Name] = t.made[pool.Name]
	}
	return all
}
