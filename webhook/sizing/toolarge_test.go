package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

func poolSizes(pool config.Pool, facts *cluster.Snapshot) *sizing.PoolSizes {
	pool.Name = "pool"
	return sizing.NewTracker(&config.WarmPoolConfiguration{Pools: []config.Pool{pool}}).Update(facts).Pool("pool")
}

func daemonFacts(nodes map[string]*corev1.Node, sets ...*appsv1.DaemonSet) *cluster.Snapshot {
	all := map[string]*appsv1.DaemonSet{}
	for _, ds := range sets {
		all[ds.Namespace+"/"+ds.Name] = ds
	}
	return &cluster.Snapshot{
		Nodes: cluster.Known(nodes), DaemonSets: cluster.Known(all), LimitRanges: cluster.Known[corev1.LimitRange](nil),
		NodePools: cluster.Known(map[string]*cluster.NodePool{"spaces": {Name: "spaces"}}),
	}
}

// What fits on no node takes no room, whoever's it is and whatever starts the nodes; it is named all the same.
func TestDaemonSetLargerThanTheNode(t *testing.T) {
	facts := daemonFacts(map[string]*corev1.Node{"n": node("n", "spaces", "m5", "cpu=8 memory=32Gi")},
		daemonSet("kube-system/cni", "cpu=100m"), daemonSet("team/huge", "cpu=100000 memory=1Gi"))
	const named = "DaemonSet team/huge alone asks for cpu 100k, more than there is (8) on m5, so none of its pods runs there and it is not counted"
	for name, c := range map[string]struct {
		pool  config.Pool
		named string
	}{
		"Karpenter's":      {config.Pool{NodePools: []string{"spaces"}, Autoscaler: config.Karpenter}, named + "; but Karpenter counts it, and starts no such node"},
		"another's":        {config.Pool{NodePools: []string{"spaces"}, Autoscaler: config.ClusterAutoscaler}, named},
		"no one's, label":  {config.Pool{NodeLabel: &config.NodeLabel{Key: config.NodePoolLabel, Values: []string{"spaces"}}, Autoscaler: config.NoAutoscaler}, named},
		"no one's, choice": {config.Pool{NodePools: []string{"spaces"}, Autoscaler: config.NoAutoscaler}, named},
	} {
		sizes := poolSizes(c.pool, facts)
		require.Len(t, sizes.Shapes, 1, name)
		assert.Equal(t, "7900m", quantity(sizes.Shapes[0].Offers["cpu"].Available), name)
		assert.Equal(t, "32Gi", quantity(sizes.Shapes[0].Offers["memory"].Available), name)
		assert.Equal(t, []string{c.named}, sizes.NotCounted, name)
		assert.Empty(t, sizes.Problems, name)
	}
	facts.NodePools = cluster.Known(map[string]*cluster.NodePool{"spaces": {Name: "spaces", Static: true}})
	assert.Equal(t, []string{named}, poolSizes(config.Pool{NodePools: []string{"spaces"}, Autoscaler: config.Karpenter}, facts).NotCounted, "a fixed number of nodes")
}

// The largest node of a type decides what is too large, and a device that is not there yet decides nothing.
func TestDaemonSetThatFitsSomewhereIsCounted(t *testing.T) {
	facts := daemonFacts(map[string]*corev1.Node{
		"a": node("a", "spaces", "m5", "cpu=8 memory=32Gi nvidia.com/gpu=0"), "b": node("b", "spaces", "m5", "cpu=7 memory=32Gi nvidia.com/gpu=0"),
	}, daemonSet("a/exact", "cpu=8"), daemonSet("a/device", "nvidia.com/gpu=1 cpu=1"), daemonSet("a/unlisted", "example.com/fuse=1 cpu=1"))
	sizes := poolSizes(config.Pool{NodePools: []string{"spaces"}, Autoscaler: config.NoAutoscaler}, facts)
	assert.Empty(t, sizes.Problems)
	assert.Equal(t, "-3", quantity(sizes.Shapes[0].Offers["cpu"].Available))
}

func TestPlansNameTheDaemonSetThatLeavesNothing(t *testing.T) {
	for _, c := range []struct{ daemons, request, fault string }{
		{"team/large", "cpu=8", "m5 has no cpu left beside its DaemonSets (largest: team/large 8)"},
		{"team/all", "nvidia.com/gpu=1", "m5 has no nvidia.com/gpu left beside its DaemonSets (largest: team/all 1)"},
	} {
		facts := daemonFacts(map[string]*corev1.Node{"n": node("n", "spaces", "m5", "cpu=8 memory=32Gi nvidia.com/gpu=1")}, daemonSet(c.daemons, c.request))
		shapes := poolSizes(config.Pool{NodePools: []string{"spaces"}, Autoscaler: config.Karpenter}, facts).Shapes
		for _, plan := range sizing.Plans(shapes, nil, func(name corev1.ResourceName) bool { return name == "nvidia.com/gpu" }) {
			assert.Contains(t, plan.Faults, c.fault, plan.Mode)
			assert.NotContains(t, plan.Faults, "no node shows an accelerator of the pool that is free: start its device plugin, or name the accelerator in sizing.allocatable")
			assert.Nil(t, plan.Request)
		}
	}
}

// Karpenter adds labels when a node has joined and is ready; its NodeClaim and a young node do not have them yet.
func TestDaemonSetsThatWaitForKarpentersLabels(t *testing.T) {
	selects := func(key string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{key: "true"} }
	}
	sets := []*appsv1.DaemonSet{
		daemonSet("a/registered", "cpu=1", selects("karpenter.sh/registered")), daemonSet("a/initialized", "cpu=2", selects("karpenter.sh/initialized")),
		daemonSet("a/before", "cpu=4", onNodes(labelsTerm("karpenter.sh/initialized", "DoesNotExist"))),
	}
	pool := config.Pool{NodePools: []string{"spaces"}, Autoscaler: config.Karpenter}
	young := node("young", "spaces", "m5", "cpu=8")
	ready := node("ready", "spaces", "m5", "cpu=8")
	ready.Labels["karpenter.sh/registered"], ready.Labels["karpenter.sh/initialized"] = "true", "true"
	sizes := poolSizes(pool, daemonFacts(map[string]*corev1.Node{"young": young, "ready": ready}, sets...))
	require.Len(t, sizes.Shapes, 1)
	assert.Equal(t, "5", quantity(sizes.Shapes[0].Offers["cpu"].Available))
	assert.Same(t, sizes.Shapes[0], sizes.ShapeOf(young))
	assert.NotContains(t, young.Labels, "karpenter.sh/registered", "facts are never changed")

	claims := daemonFacts(nil, sets...)
	claims.NodeClaims = cluster.Known(map[string]*cluster.NodeClaim{"c": {Name: "c", Labels: young.Labels, Allocatable: young.Status.Allocatable}})
	assert.Equal(t, "5", quantity(poolSizes(pool, claims).Shapes[0].Offers["cpu"].Available))

	own := node("own", "", "m5", "cpu=8")
	own.Labels = map[string]string{"team": "x"}
	byLabel := config.Pool{NodeLabel: &config.NodeLabel{Key: "team", Values: []string{"x"}}, Autoscaler: config.NoAutoscaler}
	assert.Equal(t, "4", quantity(poolSizes(byLabel, daemonFacts(map[string]*corev1.Node{"own": own}, sets...)).Shapes[0].Offers["cpu"].Available), "no node of Karpenter's")
}

func TestStaticPodsTakeRoomOnTheirNodes(t *testing.T) {
	mirror := func(name, node, request string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name + "-" + node, Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(request)}}}},
		}
	}
	byOwner, ended, ordinary := mirror("agent", "c", "cpu=1"), mirror("old", "a", "cpu=4"), mirror("other", "a", "cpu=4")
	byOwner.Annotations, byOwner.OwnerReferences = nil, []metav1.OwnerReference{{Kind: "Node", Controller: new(true)}}
	ended.Status.Phase, ordinary.Annotations = corev1.PodFailed, nil
	pods := map[string]*corev1.Pod{}
	for _, pod := range []*corev1.Pod{mirror("agent", "a", "cpu=1"), mirror("agent", "b", "cpu=1"), byOwner, ended, ordinary, mirror("agent", "d", "cpu=2")} {
		pods[pod.Namespace+"/"+pod.Name] = pod
	}
	nodes := map[string]*corev1.Node{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		nodes[name] = node(name, "spaces", "m5", "cpu=8 pods=10")
	}
	facts := daemonFacts(nodes, daemonSet("kube-system/cni", "cpu=500m"))
	facts.Pods = cluster.Known(pods)
	sizes := poolSizes(config.Pool{NodePools: []string{"spaces"}}, facts)
	left := map[string]int{}
	for _, shape := range sizes.Shapes {
		left[quantity(shape.Offers["cpu"].Available)+" cpu, "+quantity(shape.Offers["pods"].Available)+" pods"] = shape.Nodes
	}
	assert.Equal(t, map[string]int{"6500m cpu, 8 pods": 3, "5500m cpu, 8 pods": 1, "7500m cpu, 9 pods": 1}, left)
	for _, name := range []string{"a", "b", "c"} {
		shape := sizes.ShapeOf(nodes[name])
		require.NotNil(t, shape)
		assert.Equal(t, "kube-system/agent (static pod)", shape.Largest("cpu")[0].Name)
	}
}

func TestStaticPodsThatComeAreCounted(t *testing.T) {
	facts := daemonFacts(map[string]*corev1.Node{"n": node("n", "spaces", "m5", "cpu=8")})
	facts.Pods = cluster.Known[corev1.Pod](nil)
	tracker := sizing.NewTracker(&config.WarmPoolConfiguration{Pools: []config.Pool{{Name: "pool", NodePools: []string{"spaces"}}}})
	assert.Equal(t, "8", quantity(tracker.Update(facts).Pool("pool").Shapes[0].Offers["cpu"].Available))
	next := *facts
	next.Pods = facts.Pods.With(map[string]*corev1.Pod{"kube-system/a-n": {
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a-n", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu=3")}}}},
	}})
	assert.Equal(t, "5", quantity(tracker.Update(&next).Pool("pool").Shapes[0].Offers["cpu"].Available))
}

func quantity(q resource.Quantity) string { return q.String() }
