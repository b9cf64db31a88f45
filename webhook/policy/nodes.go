package policy

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// patience is how long a pod may wait for a node before that counts as stuck, and a node for its placeholder: a new node
// takes 5 to 7 minutes.
const patience = 10 * time.Minute

// poolNodePool is a NodePool of a pool.
type poolNodePool struct {
	about
	*cluster.NodePool
	of *placement.Pool
}

// nodePools are the NodePools of all pools, in the order of pools and names; one of several pools stands once for each, and
// one with several definitions once for each.
func (a *Audit) nodePools() []poolNodePool {
	var found []poolNodePool
	for _, pool := range a.pools.All() {
		for _, np := range pool.NodePools {
			found = append(found, poolNodePool{a.about("NodePool", "", np.Name, pool.Config.Name), np, pool})
		}
		for _, name := range pool.Config.NodePools {
			for i, np := range a.facts.NodePools.Variants(name) {
				about := a.about("NodePool", "", np.Name, pool.Config.Name)
				about.Definition = i + 1
				found = append(found, poolNodePool{about, np, pool})
			}
		}
	}
	return found
}

// unreadNodePools reports NodePools that cannot be read, where a pool is made of them.
func (a *Audit) unreadNodePools() {
	if slices.ContainsFunc(a.pools.All(), func(p *placement.Pool) bool {
		return len(p.Config.NodePools) > 0 || p.Config.Autoscaler == config.Karpenter
	}) {
		a.unread("NodePools", a.facts.NodePools)
	}
}

// eachNodePool judges each NodePool of the pools. What could not be read, or not in full, is not verified; those that are
// missing are nodepool-ready's.
func (a *Audit) eachNodePool(judge func(poolNodePool)) {
	a.unreadNodePools()
	for _, np := range a.nodePools() {
		if np.Problem != "" {
			np.notVerified(podSpecPath, "%s", np.Problem)
		} else {
			judge(np)
		}
	}
}

const capacityType = "karpenter.sh/capacity-type"

// requirementOn is the index of the NodePool's requirement on the label; -1: it has none.
func requirementOn(np *cluster.NodePool, key string) int {
	return slices.IndexFunc(np.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == key })
}

// mentions tells whether a NodePool sets the label, or requires something of it.
func mentions(np *cluster.NodePool, key string) bool {
	_, labelled := np.Labels[key]
	return labelled || requirementOn(np, key) >= 0
}

// isRuntimeLabel tells the labels that nodes have and no NodePool may set.
func isRuntimeLabel(key string) bool {
	if key == config.NodePoolLabel || key == capacityType {
		return false
	}
	domain, _, _ := strings.Cut(key, "/")
	return key == corev1.LabelHostname || domain == "karpenter.sh" || strings.HasSuffix(domain, ".karpenter.sh")
}

// isProviderLabel tells the labels that Karpenter and its providers know of themselves: no NodePool has to name them.
func isProviderLabel(key string) bool {
	switch key {
	case corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, corev1.LabelArchStable,
		corev1.LabelOSStable, corev1.LabelWindowsBuild, capacityType:
		return true
	}
	return slices.ContainsFunc([]string{"karpenter.k8s.", "karpenter.azure.com/", "eks.amazonaws.com/", "karpenter.sagemaker.amazonaws.com/", "sagemaker.amazonaws.com/"},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
