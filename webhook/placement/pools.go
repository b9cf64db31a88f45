package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// PoolLabel on a Workspace, a Workspace pod or a placeholder Deployment names its pool.
const PoolLabel = "warmpool.sh/pool"

// Pools are the configured pools with what the cluster says about them. Immutable.
type Pools struct {
	list             []*Pool
	byName           map[string]*Pool
	acceleratorGlobs []string
	templates        templates
	namespaces       cluster.Facts[corev1.Namespace]
}

// Pool is one warm pool.
type Pool struct {
	// Config is the pool's part of the configuration.
	Config *config.Pool
	// Requirement is the node affinity that brings a pod into the pool.
	Requirement corev1.NodeSelectorRequirement
	// Taints are the NoSchedule and NoExecute taints that pods of the pool must tolerate.
	Taints []corev1.Taint
	// NodeTaints are all taints that the pool's nodes have or may get: Taints, start-up taints and those seen on nodes.
	NodeTaints []corev1.Taint
	// NodePools are the Karpenter NodePools whose nodes belong to the pool, by name; those that are missing are in Unknown.
	NodePools []*cluster.NodePool
	// Static tells that all the pool's NodePools keep a fixed number of nodes.
	Static bool
	// Unknown says which facts about the pool are missing, one short clause each; empty when all are known.
	Unknown []string

	tolerations []corev1.Toleration
	offers      []*offer
	nodes       nodes
	namespaces  apilabels.Selector // of those that may use the pool; nil: all
}

// Compile joins the configuration with what the Snapshot knows of each pool, and with what its nodes show.
func Compile(cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot, seen Seen) *Pools {
	pools := &Pools{
		byName:    make(map[string]*Pool, len(cfg.Pools)),
		templates: templates{facts: facts.Templates, shared: cfg.Workspaces.DefaultTemplateNamespace},

		namespaces: facts.Namespaces,
	}
	for _, v := range vendors {
		pools.acceleratorGlobs = append(pools.acceleratorGlobs, v.globs...)
	}
	for i := range cfg.Pools {
		pool := compilePool(&cfg.Pools[i], facts)
		pool.addSeen(seen)
		pool.nodes.Node = facts.Nodes.Get
		pools.list = append(pools.list, pool)
		pools.byName[pool.Config.Name] = pool
		pools.acceleratorGlobs = append(pools.acceleratorGlobs, pool.Config.Accelerators...)
	}
	return pools
}

// All are the pools in the order of the configuration.
func (p *Pools) All() []*Pool { return p.list }

// Get returns the pool with the name, or nil.
func (p *Pools) Get(name string) *Pool { return p.byName[name] }

// HasNode tells whether a node has the pool's label with one of its values.
func (p *Pool) HasNode(node *corev1.Node) bool {
	value, ok := node.Labels[p.Requirement.Key]
	return ok && slices.Contains(p.Requirement.Values, value)
}

func compilePool(cfg *config.Pool, facts *cluster.Snapshot) *Pool {
	pool := &Pool{Config: cfg, namespaces: admitted(cfg)}
	key, values := cfg.Label()
	pool.Requirement = in(key, values...)
	nodePools := pool.nodePools(facts)
	pool.NodePools = nodePools
	pool.Static = len(nodePools) > 0 && !slices.ContainsFunc(nodePools, func(np *cluster.NodePool) bool { return !np.Static })
	for _, np := range nodePools {
		pool.offers = append(pool.offers, offerOf(np).within(pool.Requirement))
		pool.Taints = append(pool.Taints, hardTaints(np.Taints, func(t corev1.Taint) bool { return !cluster.IsLifecycleTaint(t.Key) })...)
		pool.NodeTaints = append(append(pool.NodeTaints, np.Taints...), np.StartupTaints...)
	}
	pool.addMissingOffers()
	pool.Taints = append(pool.Taints, cfg.Taints()...)
	for _, glob := range cfg.Accelerators {
		taint := corev1.Taint{Key: deviceTaint(glob), Effect: corev1.TaintEffectNoSchedule}
		// A declared taint is the device's own, with its value: to ask for both would deny who tolerates that value.
		if taint.Key != "" && !slices.ContainsFunc(pool.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&taint) }) {
			pool.Taints = append(pool.Taints, taint)
		}
	}
	pool.Taints, pool.tolerations = tolerationsFor(pool.Taints, func(key string) bool {
		return matchesAny(cfg.Accelerators, key) || slices.ContainsFunc(cfg.Accelerators, func(glob string) bool { return deviceTaint(glob) == key })
	})
	pool.NodeTaints = append(pool.NodeTaints, pool.Taints...)
	return pool
}

// nodePools are the NodePools whose nodes belong to the pool, by name; those that are missing are noted.
func (p *Pool) nodePools(facts *cluster.Snapshot) []*cluster.NodePool {
	usesKarpenter := p.Config.NodeLabel == nil
	if !facts.NodePools.Known() {
		if usesKarpenter {
			p.Unknown = append(p.Unknown, "NodePools: "+facts.NodePools.Reason())
		}
		return nil
	}
	var found []*cluster.NodePool
	for name, np := range facts.NodePools.All() {
		switch {
		case usesKarpenter && slices.Contains(p.Config.NodePools, name):
			found = append(found, np)
		case !usesKarpenter && offerOf(np).sets(p.Requirement):
			found = append(found, np)
		}
	}
	if usesKarpenter {
		for _, name := range p.Config.NodePools {
			switch malformed := facts.NodePools.Malformed(name); {
			case malformed != "":
				p.Unknown = append(p.Unknown, fmt.Sprintf("NodePool %q cannot be read (%s)", name, malformed))
			case facts.NodePools.Get(name) == nil:
				p.Unknown = append(p.Unknown, fmt.Sprintf("NodePool %q %s", name, facts.NodePools.Missing()))
			}
		}
	}
	return found
}

// addMissingOffers makes up for values of the pool's label that no known NodePool sets: all that is known of such
// nodes is the label itself.
func (p *Pool) addMissingOffers() {
	for _, value := range p.Requirement.Values {
		one := p.Requirement
		one.Values = []string{value}
		if !slices.ContainsFunc(p.offers, func(o *offer) bool { return o.sets(one) }) {
			p.offers = append(p.offers, &offer{byKey: map[string]values{NormalKey(one.Key): anything().read([]corev1.NodeSelectorRequirement{one})}})
		}
	}
}

// addSeen takes up what the pool's nodes show.
func (p *Pool) addSeen(seen Seen) {
	if seen.Taints != nil {
		p.addNodeTaints(seen.Taints(p.Config.Name))
	}
	if seen.Labels != nil {
		labels := seen.Labels(p.Config.Name)
		for _, o := range p.offers {
			o.learn(p.Requirement, labels)
		}
	}
	p.nodes.ByHostname = seen.ByHostname
	if p.nodes.ByHostname == nil {
		p.nodes.ByHostname = func(string) []*corev1.Node { return nil }
	}
}

// addNodeTaints adds the taints seen on the pool's nodes. Lifecycle taints come and go: what is right now must not
// depend on them.
func (p *Pool) addNodeTaints(seen []corev1.Taint) {
	for _, taint := range seen {
		if !cluster.IsLifecycleTaint(taint.Key) && !slices.ContainsFunc(p.NodeTaints, func(have corev1.Taint) bool { return sameTaint(have, taint) }) {
			p.NodeTaints = append(p.NodeTaints, taint)
		}
	}
}
