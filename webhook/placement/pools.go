package placement

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Labels that decide about pools.
const (
	// PoolLabel on a Workspace, a Workspace pod or a placeholder Deployment names its pool.
	PoolLabel = "warmpool.sh/pool"
	// NodePoolLabel is the label of a node with the name of its Karpenter NodePool.
	NodePoolLabel = "karpenter.sh/nodepool"
)

// Pools are the configured pools with what the cluster says about them. Immutable.
type Pools struct {
	list             []*Pool
	byName           map[string]*Pool
	acceleratorGlobs []string
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
	// Unknown says which facts about the pool are missing, one short clause each; empty when all are known.
	Unknown []string

	tolerations []corev1.Toleration
	offers      []offer
}

// Compile joins the configuration with what the Snapshot knows of each pool.
func Compile(cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot) *Pools {
	pools := &Pools{byName: make(map[string]*Pool, len(cfg.Pools))}
	for _, v := range vendors {
		pools.acceleratorGlobs = append(pools.acceleratorGlobs, v.globs...)
	}
	for i := range cfg.Pools {
		pool := compilePool(&cfg.Pools[i], facts)
		pools.list = append(pools.list, pool)
		pools.byName[pool.Config.Name] = pool
		pools.acceleratorGlobs = append(pools.acceleratorGlobs, pool.Config.Accelerators...)
	}
	pools.addNodeTaints(facts)
	return pools
}

// All are the pools in the order of the configuration.
func (p *Pools) All() []*Pool { return p.list }

// Get returns the pool with the name, or nil.
func (p *Pools) Get(name string) *Pool { return p.byName[name] }

func compilePool(cfg *config.Pool, facts *cluster.Snapshot) *Pool {
	pool := &Pool{Config: cfg}
	pool.Requirement = corev1.NodeSelectorRequirement{
		Key: NodePoolLabel, Operator: corev1.NodeSelectorOpIn, Values: cfg.NodePools,
	}
	if cfg.NodeLabel != nil {
		pool.Requirement.Key, pool.Requirement.Values = cfg.NodeLabel.Key, cfg.NodeLabel.Values
	}
	for _, np := range pool.nodePools(facts) {
		pool.offers = append(pool.offers, offerOf(np))
		pool.Taints = append(pool.Taints, hardTaints(np.Taints, func(t corev1.Taint) bool { return !isLifecycleTaint(t.Key) })...)
		pool.NodeTaints = append(append(pool.NodeTaints, np.Taints...), np.StartupTaints...)
	}
	pool.addMissingOffers()
	pool.Taints = append(pool.Taints, configuredTaints(cfg)...)
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
			p.Unknown = append(p.Unknown, facts.NodePools.Reason())
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
			if facts.NodePools.Get(name) == nil {
				p.Unknown = append(p.Unknown, fmt.Sprintf("NodePool %q does not exist", name))
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
		if !slices.ContainsFunc(p.offers, func(o offer) bool { return o.sets(one) }) {
			p.offers = append(p.offers, offer{name: value, byKey: map[string][]corev1.NodeSelectorRequirement{one.Key: {one}}})
		}
	}
}

func configuredTaints(cfg *config.Pool) []corev1.Taint {
	var taints []corev1.Taint
	for _, text := range cfg.NodeTaints {
		// Validation has refused what does not parse.
		if taint, err := config.ParseTaint(text); err == nil {
			taints = append(taints, taint)
		}
	}
	return taints
}

// addNodeTaints adds the taints seen on nodes, reading every node once.
func (p *Pools) addNodeTaints(facts *cluster.Snapshot) {
	byLabel := map[[2]string]*Pool{}
	keys := map[string]bool{}
	for _, pool := range p.list {
		keys[pool.Requirement.Key] = true
		for _, value := range pool.Requirement.Values {
			byLabel[[2]string{pool.Requirement.Key, value}] = pool
		}
	}
	sortedKeys := slices.Sorted(maps.Keys(keys))
	for _, node := range facts.Nodes.All() {
		for _, key := range sortedKeys {
			pool := byLabel[[2]string{key, node.Labels[key]}]
			if pool == nil {
				continue
			}
			for _, taint := range node.Spec.Taints {
				if !slices.ContainsFunc(pool.NodeTaints, func(have corev1.Taint) bool { return sameTaint(have, taint) }) {
					pool.NodeTaints = append(pool.NodeTaints, taint)
				}
			}
		}
	}
}
