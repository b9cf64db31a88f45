package sizing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// changes makes up objects of a small world, so that they meet.
type changes struct{ *rand.Rand }

func (c changes) oneOf(choices ...string) string { return choices[c.IntN(len(choices))] }

func (c changes) node(name string) *corev1.Node {
	if c.IntN(4) == 0 {
		return nil
	}
	allocatable := c.oneOf("", "cpu=8 memory=16Gi pods=58", "cpu=7910m memory=16Gi nvidia.com/gpu=0", "cpu=8 memory=15Gi nvidia.com/gpu=1", "cpu=-1 memory=1e30", "memory=9000m")
	n := node(name, c.oneOf("p1", "p1b", "p2", "none"), c.oneOf("m5", "c5", ""), allocatable, labelled("zone", c.oneOf("a", "b")))
	if c.IntN(3) == 0 {
		n.Labels["team"] = c.oneOf("x", "y")
	}
	if c.IntN(3) == 0 {
		tainted(c.oneOf("dedicated:NoSchedule", "setup:NoSchedule", "karpenter.sh/disrupted:NoSchedule", "soft:PreferNoSchedule"))(n)
	}
	switch c.IntN(12) {
	case 0:
		notReady(n)
	case 1:
		deleting(n)
	case 2:
		n.Labels = nil
	}
	return n
}

func (c changes) claim(name string) *cluster.NodeClaim {
	n := c.node(name)
	if n == nil {
		return nil
	}
	return &cluster.NodeClaim{Name: name, Labels: n.Labels, Taints: n.Spec.Taints, Allocatable: n.Status.Allocatable, Deleting: n.DeletionTimestamp != nil}
}

func (c changes) daemonSet(key string) *appsv1.DaemonSet {
	if c.IntN(4) == 0 {
		return nil
	}
	ds := daemonSet(key, c.oneOf("", "cpu=100m", "cpu=1 memory=1Gi", "cpu=-1", "memory=500m"))
	spec := &ds.Spec.Template.Spec
	switch c.IntN(7) {
	case 0:
		everywhere(spec)
	case 1:
		onNodes(labelsTerm("zone", "In", "a"))(spec)
	case 2:
		onNodes(fieldsTerm("In", "n1"), labelsTerm("zone", "Gt", "x"))(spec)
	case 3:
		spec.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
	case 4:
		spec.NodeName = "n3"
	}
	return ds
}

// step changes some facts, each by one With as a Reader does.
func (c changes) step(facts *cluster.Snapshot) *cluster.Snapshot {
	next := *facts
	nodes, claims := map[string]*corev1.Node{}, map[string]*cluster.NodeClaim{}
	for range c.IntN(3) {
		name := fmt.Sprintf("n%d", c.IntN(6))
		nodes[name] = c.node(name)
	}
	for range c.IntN(2) {
		name := fmt.Sprintf("c%d", c.IntN(3))
		claims[name] = c.claim(name)
	}
	next.Nodes, next.NodeClaims = facts.Nodes.With(nodes), facts.NodeClaims.With(claims)
	switch c.IntN(10) {
	case 0, 1:
		key := fmt.Sprintf("ds/%d", c.IntN(4))
		next.DaemonSets = facts.DaemonSets.With(map[string]*appsv1.DaemonSet{key: c.daemonSet(key)})
	case 2:
		key := c.oneOf("ds", "elsewhere") + "/limits" + c.oneOf("1", "2")
		item := corev1.LimitRangeItem{DefaultRequest: list(c.oneOf("cpu=200m", "cpu=300m memory=1Gi"))}
		next.LimitRanges = facts.LimitRanges.With(map[string]*corev1.LimitRange{key: limitRange(key, item)})
	case 3:
		np := &cluster.NodePool{Name: "p1", StartupTaints: parseTaints(c.oneOf("setup:NoSchedule", "dedicated:NoSchedule"))}
		next.NodePools = facts.NodePools.With(map[string]*cluster.NodePool{"p1": np})
	case 4:
		n := c.node("seen")
		if n == nil || n.Labels == nil {
			break
		}
		next.LastSeen = facts.LastSeen.With(map[string]*corev1.Node{c.oneOf("one", "two") + "/m5": n})
	case 5: // listed anew: nothing tells what changed
		again := map[string]*corev1.Node{}
		for name, n := range facts.Nodes.All() {
			if c.IntN(4) > 0 {
				again[name] = n
			}
		}
		next.Nodes = cluster.Known(again)
	}
	return &next
}

func FuzzTracker(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	cfg := pools("one", "two")
	cfg.Pools[0].NodePools, cfg.Pools[1].NodePools = []string{"p1", "p1b"}, []string{"p2"}
	cfg.Pools[1].NodeTaints = []string{"dedicated:NoSchedule"}
	cfg.Pools[1].Sizing.Allocatable = list("cpu=4")
	cfg.Pools = append(cfg.Pools, config.Pool{Name: "team", NodeLabel: &config.NodeLabel{Key: "team", Values: []string{"x"}}})
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := changes{rand.New(rand.NewPCG(seed, 0))}
		tracker, facts := sizing.NewTracker(cfg), snapshot()
		for range 25 {
			facts = c.step(facts)
			kept, anew := tracker.Update(facts), sizing.NewTracker(cfg).Update(facts)
			for _, pool := range cfg.Pools {
				require.Equal(t, anew.Pool(pool.Name), kept.Pool(pool.Name))
			}
			for i := range 6 {
				name := fmt.Sprintf("n%d", i)
				require.Equal(t, anew.ByHostname(name), kept.ByHostname(name))
			}
		}
	})
}
