package sizing_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// largeCluster has so many nodes, each with a NodeClaim, in 20 pools, the last of which has none, and 200 DaemonSets.
func largeCluster(nodes int) (*config.WarmPoolConfiguration, *cluster.Snapshot) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("pool-%d", i))
	}
	facts := snapshot()
	all, claims := map[string]*corev1.Node{}, map[string]*cluster.NodeClaim{}
	for i := range nodes {
		n := benchNode(i, i)
		all[n.Name] = n
		claims[n.Name] = &cluster.NodeClaim{Name: n.Name, Labels: n.Labels, Allocatable: n.Status.Allocatable}
	}
	daemonSets := map[string]*appsv1.DaemonSet{}
	for i := range 200 {
		key := fmt.Sprintf("ds-%d/agent", i)
		ds := daemonSet(key, "cpu=10m memory=20Mi", everywhere)
		if i%4 == 0 {
			onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "In", fmt.Sprintf("type-%d", i%5)))(&ds.Spec.Template.Spec)
		}
		daemonSets[key] = ds
	}
	facts.Nodes, facts.NodeClaims, facts.DaemonSets = cluster.Known(all), cluster.Known(claims), cluster.Known(daemonSets)
	return pools(names...), facts
}

func benchNode(i, millis int) *corev1.Node {
	return node(fmt.Sprintf("node-%d", i), fmt.Sprintf("pool-%d", i%19), fmt.Sprintf("type-%d", i%5),
		fmt.Sprintf("cpu=%dm memory=193044768Ki pods=234", 40_000+millis%1000))
}

func BenchmarkUpdate(b *testing.B) {
	for _, size := range []int{10, 1_000, 10_000} {
		cfg, facts := largeCluster(size)
		b.Run(fmt.Sprintf("change=node/nodes=%d", size), func(b *testing.B) {
			tracker := sizing.NewTracker(cfg)
			tracker.Update(facts)
			current := facts
			for i := 0; b.Loop(); i++ {
				next := *current
				n := benchNode(i%size, i)
				next.Nodes = next.Nodes.With(map[string]*corev1.Node{n.Name: n})
				current = &next
				tracker.Update(current)
			}
		})
		b.Run(fmt.Sprintf("change=all/nodes=%d", size), func(b *testing.B) {
			for b.Loop() {
				sizing.NewTracker(cfg).Update(facts)
			}
		})
	}
}
