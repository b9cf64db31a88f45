package sizing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// sizesOf takes a pool's numbers from the best source that has some: nodes, NodeClaims, nodes that were seen, the
// configuration.
func (t *Tracker) sizesOf(pool *config.Pool) *PoolSizes {
	nodes := t.nodes.of(pool.Name)
	sizes := &PoolSizes{
		Unknown:  fmt.Sprintf("no node of pool %s has been seen, and sizing.allocatable is not configured", pool.Name),
		Problems: t.classifier.problems,
	}
	key, _ := pool.Label()
	for _, source := range []struct {
		name    Source
		members func() []*member
	}{
		{FromNodes, func() []*member { return nodes }},
		{FromNodeClaims, func() []*member { return t.claims.of(pool.Name) }},
		{FromLastSeen, func() []*member { return t.standIns(pool, t.lastSeen(pool)) }},
		{FromConfig, func() []*member { return t.standIns(pool, t.configured(pool)) }},
	} {
		if kinds := kindsOf(source.members()); len(kinds) > 0 {
			sizes = sizesFrom(kinds, source.name, key, t.classifier.problems, pool.Autoscaler == config.Karpenter && !t.startsNone(pool))
			break
		}
	}
	sizes.Taints, sizes.Labels = taintsOf(nodes), labelsOf(nodes, key)
	return sizes
}

// standIns are those of the nodes that are of the pool.
func (t *Tracker) standIns(pool *config.Pool, nodes []*corev1.Node) []*member {
	var members []*member
	for _, node := range nodes {
		members = append(members, t.members(node, nil)...)
	}
	return slices.DeleteFunc(members, func(m *member) bool { return m.pool != pool.Name })
}

// nodeOf is the node that a NodeClaim announces.
func nodeOf(name string, claim *cluster.NodeClaim) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: claim.Labels},
		Spec:       corev1.NodeSpec{Taints: claim.Taints},
		Status:     corev1.NodeStatus{Allocatable: claim.Allocatable},
	}
}

func withTaints(node *corev1.Node, taints []corev1.Taint) *corev1.Node {
	if len(taints) == 0 {
		return node
	}
	tainted := *node
	tainted.Spec.Taints = slices.Concat(node.Spec.Taints, taints)
	return &tainted
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

// configured makes up a node of the configured numbers for each NodePool or label value of the pool.
func (t *Tracker) configured(pool *config.Pool) []*corev1.Node {
	if len(pool.Sizing.Allocatable) == 0 {
		return nil
	}
	key, values := pool.Label()
	var nodes []*corev1.Node
	for _, value := range values {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "configured", Labels: map[string]string{
				// What Workspaces run on, and what DaemonSets commonly ask for; a NodePool that says else is believed.
				corev1.LabelOSStable: string(corev1.Linux), corev1.LabelArchStable: "amd64",
			}},
			Status: corev1.NodeStatus{Allocatable: pool.Sizing.Allocatable},
		}
		if np := t.facts.NodePools.Get(value); np != nil && key == config.NodePoolLabel {
			for _, r := range np.Requirements {
				if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
					node.Labels[r.Key] = r.Values[0]
				}
			}
			maps.Copy(node.Labels, np.Labels)
			node.Spec.Taints = np.Taints
		}
		node.Labels[key] = value
		nodes = append(nodes, withTaints(node, t.nodeTaints[pool.Name]))
	}
	return nodes
}
