package sizing

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Sizes are the shapes of every pool at one moment. Immutable.
type Sizes struct {
	byPool map[string]*PoolSizes
	nodes  cluster.Facts[corev1.Node]
	// byHostname are the nodes whose label kubernetes.io/hostname is not their name.
	byHostname map[string][]*corev1.Node
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

// Tracker makes Sizes, which follow from a Snapshot alone. It remembers by node which pools the node is of and which
// DaemonSets run there, and the sizes of pools in which nothing changed. It is used by one goroutine at a time.
type Tracker struct {
	config     *config.WarmPoolConfiguration
	poolOf     map[[2]string]string // label key and value → pool name
	labelKeys  []string
	nodeTaints map[string][]corev1.Taint // configured, by pool name

	facts      *cluster.Snapshot // of the last Update
	classifier *classifier
	// nodes and claims are the nodes that there are and that NodeClaims announce.
	nodes, claims memory
	// renamed are the nodes whose label kubernetes.io/hostname is not their name, by name.
	renamed map[string]*corev1.Node
	// made are the sizes of the pools in which nothing changed.
	made map[string]*PoolSizes
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

// Update makes the Sizes of a Snapshot. After a change of nodes and NodeClaims only those that changed are looked at
// closely, and their pools are made anew; what DaemonSets ask for changes every node.
func (t *Tracker) Update(facts *cluster.Snapshot) *Sizes {
	before := t.facts
	if before == nil || t.classifier.outdated(facts, before) {
		before = &cluster.Snapshot{}
		t.classifier, t.made = newClassifier(facts), map[string]*PoolSizes{}
		t.nodes, t.claims, t.renamed = memory{}, memory{}, map[string]*corev1.Node{}
	}
	if facts.LastSeen.Differs(before.LastSeen) || facts.NodePools.Differs(before.NodePools) {
		clear(t.made)
	}
	t.facts = facts
	changed := func(pool string) { delete(t.made, pool) }
	eachChange(before.Nodes, facts.Nodes, func(name string, node *corev1.Node) {
		delete(t.renamed, name)
		if node == nil {
			t.nodes.replace(name, nil, changed)
			return
		}
		if hostname := node.Labels[corev1.LabelHostname]; hostname != "" && hostname != name {
			t.renamed[name] = node
		}
		t.nodes.replace(name, t.members(node, nil), changed)
	})
	eachChange(before.NodeClaims, facts.NodeClaims, func(name string, claim *cluster.NodeClaim) {
		if claim == nil || claim.Deleting {
			t.claims.replace(name, nil, changed)
			return
		}
		t.claims.replace(name, t.members(nodeOf(name, claim), t.nodeTaints), changed)
	})
	t.classifier.forget(2 * (t.nodes.len() + t.claims.len()))
	all := &Sizes{byPool: make(map[string]*PoolSizes, len(t.config.Pools)), nodes: facts.Nodes, byHostname: byHostname(t.renamed)}
	for i := range t.config.Pools {
		pool := &t.config.Pools[i]
		if t.made[pool.Name] == nil {
			t.made[pool.Name] = t.sizesOf(pool)
		}
		all.byPool[pool.Name] = t.made[pool.Name]
	}
	return all
}
