package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

const noNode = "no node of pool gpu-a has been seen, and sizing.allocatable is not configured"

func claim(name, nodePool, allocatable string) *cluster.NodeClaim {
	return &cluster.NodeClaim{
		Name: name, Labels: map[string]string{"karpenter.sh/nodepool": nodePool, corev1.LabelInstanceTypeStable: "g5.xlarge"},
		Allocatable: list(allocatable),
	}
}

// Sources come and go in a pool that starts with no node.
func TestSourcesOfAPoolWithoutNodes(t *testing.T) {
	cfg := pools("gpu-a", "gpu-b")
	tracker := sizing.NewTracker(cfg)
	facts := *snapshot(node("b1", "gpu-b", "g5.xlarge", "cpu=99"), daemonSet("a/ds", "cpu=1", everywhere))
	expect := func(source sizing.Source, available string) {
		t.Helper()
		updated := facts
		sizes := tracker.Update(&updated).Pool("gpu-a")
		if source == "" {
			assert.Empty(t, sizes.Shapes)
			assert.Equal(t, noNode, sizes.Unknown)
			return
		}
		shape := onlyShape(t, sizes)
		assert.Empty(t, sizes.Unknown)
		assert.Equal(t, source, shape.Source)
		assert.Equal(t, "cpu="+available, text(shape.Available()))
	}
	withNode := func(n *corev1.Node) { facts.Nodes = facts.Nodes.With(map[string]*corev1.Node{"a1": n}) }
	withClaim := func(c *cluster.NodeClaim) {
		facts.NodeClaims = facts.NodeClaims.With(map[string]*cluster.NodeClaim{"claim": c})
	}

	expect("", "")
	facts.LastSeen = facts.LastSeen.With(map[string]*corev1.Node{
		"gpu-a/g5.xlarge": node("old", "gpu-a", "g5.xlarge", "cpu=5"),
		"gpu-b/g5.xlarge": node("other", "gpu-b", "g5.xlarge", "cpu=50"),
		"gpu-a/p5":        node("empty", "gpu-a", "p5", ""),
		"gpu-a/foreign":   node("moved", "gpu-b", "g5.xlarge", "cpu=3"), // of another pool by now
	})
	expect(sizing.FromLastSeen, "4")
	withClaim(claim("claim", "gpu-a", "")) // not launched yet
	expect(sizing.FromLastSeen, "4")
	withClaim(claim("claim", "gpu-b", "cpu=60"))
	expect(sizing.FromLastSeen, "4")
	withClaim(claim("claim", "gpu-a", "cpu=6"))
	expect(sizing.FromNodeClaims, "5")
	withNode(node("a1", "gpu-a", "g5.xlarge", "")) // registered, and says nothing yet
	expect(sizing.FromNodeClaims, "5")
	withNode(node("a1", "gpu-a", "g5.xlarge", "cpu=7", notReady))
	expect(sizing.FromNodeClaims, "5")
	withNode(node("a1", "gpu-a", "g5.xlarge", "cpu=7", deleting))
	expect(sizing.FromNodeClaims, "5")
	withNode(node("a1", "gpu-a", "g5.xlarge", "cpu=7"))
	expect(sizing.FromNodes, "6")
	withNode(node("a1", "gpu-b", "g5.xlarge", "cpu=7"))
	expect(sizing.FromNodeClaims, "5")
	withNode(nil)
	gone := claim("claim", "gpu-a", "cpu=6")
	gone.Deleting = true
	withClaim(gone)
	expect(sizing.FromLastSeen, "4")
	facts.LastSeen = facts.LastSeen.With(map[string]*corev1.Node{"gpu-a/g5.xlarge": nil})
	expect("", "")

	cfg.Pools[0].Sizing.Allocatable = list("cpu=8")
	tracker = sizing.NewTracker(cfg)
	expect(sizing.FromConfig, "7")
	withClaim(claim("claim", "gpu-a", "cpu=6"))
	expect(sizing.FromNodeClaims, "5")
}

func TestConfiguredNumbers(t *testing.T) {
	cfg := pools("a")
	cfg.Pools[0].NodePools = []string{"a", "b"}
	cfg.Pools[0].NodeTaints = []string{"dedicated:NoSchedule"}
	cfg.Pools[0].Sizing.Allocatable = list("cpu=8 memory=16Gi")
	tolerate := func(keys ...string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			for _, key := range keys {
				s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
			}
		}
	}
	arm := &cluster.NodePool{
		Name: "b", Taints: parseTaints("arm:NoSchedule"), Labels: map[string]string{"team": "x"},
		Requirements: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: "In", Values: []string{"arm64"}},
			{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: []string{"m7g.large", "m7g.xlarge"}},
		},
	}
	sizes := sizing.NewTracker(cfg).Update(snapshot(arm,
		daemonSet("ds/intel", "cpu=1", tolerate("dedicated", "arm"), onNodes(labelsTerm(corev1.LabelArchStable, "In", "amd64"))),
		daemonSet("ds/linux", "cpu=2", tolerate("dedicated"), onNodes(labelsTerm(corev1.LabelOSStable, "In", "linux"))),
		daemonSet("ds/plain", "cpu=4"),
		daemonSet("ds/team", "memory=1Gi", tolerate("dedicated", "arm"), onNodes(labelsTerm("team", "In", "x"))),
	)).Pool("a")
	require.Len(t, sizes.Shapes, 2)
	assert.Equal(t, []string{"ds/intel", "ds/linux"}, names(sizes.Shapes[0].Daemons))
	assert.Equal(t, []string{"ds/team"}, names(sizes.Shapes[1].Daemons))
	assert.Equal(t, "cpu=8 memory=15Gi", text(sizes.Shapes[1].Available()))
	assert.Equal(t, "nodes without instance type", sizes.Shapes[1].String())
	assert.Zero(t, sizes.Shapes[1].Nodes)

	spec := podOf("cpu=1")
	spec.NodeSelector = map[string]string{corev1.LabelArchStable: "s390x", "karpenter.sh/nodepool": "b"}
	assert.True(t, sizes.Shapes[1].Hosts(spec), "of configured numbers only the pool's label is known")
	assert.False(t, sizes.Shapes[0].Hosts(spec))
}

func TestSmallestAllocatableOfATypeCounts(t *testing.T) {
	sizes := sizesOf(
		node("n1", "cpu", "m5", "cpu=8 memory=31Gi pods=58"),
		node("n2", "cpu", "m5", "cpu=7910m memory=32Gi"),
		node("n3", "cpu", "m5", "cpu=7910m memory=33Gi"),
		node("n4", "cpu", "m5", "cpu=1", notReady),
		node("n5", "other", "m5", "cpu=2"),
		node("n6", "cpu", "c5", "cpu=3"),
		node("n7", "cpu", "", "cpu=4", func(n *corev1.Node) { delete(n.Labels, corev1.LabelInstanceTypeStable) }),
		node("n8", "cpu", "m5", "cpu=1", func(n *corev1.Node) { n.Labels = nil }),
	)
	require.Len(t, sizes.Shapes, 3)
	assert.Equal(t, "nodes without instance type", sizes.Shapes[0].String())
	assert.Equal(t, "cpu=3", text(sizes.Shapes[1].Available()))
	m5 := sizes.Shapes[2]
	assert.Equal(t, "cpu=7910m memory=31Gi pods=58", text(m5.Available()))
	assert.Equal(t, 3, m5.Nodes)
	assert.Equal(t, "n2", m5.Offers[corev1.ResourceCPU].Node, "the first by name of several")
	assert.Equal(t, "n1", m5.Offers[corev1.ResourceMemory].Node)
	assert.Equal(t, []corev1.ResourceName{"nvidia.com/gpu"}, m5.Unknown(list("nvidia.com/gpu=1 pods=1 cpu=1")))
}

func TestADevicePluginThatStartsAnewIsNoSmallerNode(t *testing.T) {
	gpus := func(counts ...string) string {
		var objects []any
		for i, count := range counts {
			objects = append(objects, node("n"+string(rune('1'+i)), "cpu", "p4d", "hugepages-2Mi=0 nvidia.com/gpu="+count))
		}
		offer := onlyShape(t, sizesOf(objects...)).Offers["nvidia.com/gpu"]
		return offer.Available.String() + " of " + offer.Node
	}
	assert.Equal(t, "7 of n3", gpus("8", "0", "7"))
	assert.Equal(t, "8 of n2", gpus("0", "8"))
	assert.Equal(t, "0 of n1", gpus("0", "0"), "where all say 0 there are none")
	hugepages := onlyShape(t, sizesOf(node("a", "cpu", "m5", "hugepages-2Mi=0"), node("b", "cpu", "m5", "hugepages-2Mi=8Mi"))).Offers["hugepages-2Mi"]
	assert.Equal(t, "a", hugepages.Node, "hugepages come of no plugin")
}

func TestNumbersThatCannotBeAreLeftOutAndTold(t *testing.T) {
	sizes := sizesOf(
		node("n1", "cpu", "m5", "cpu=-8 memory=1e30 pods=58"),
		node("n2", "cpu", "m5", "cpu=8 memory=9Ei"),
		node("n3", "cpu", "m5", "cpu=9223372036854775807 memory=16Gi"),
		node("n4", "cpu", "c5", "cpu=-1"),
	)
	assert.Equal(t, []string{
		"node n1 says that -8 of cpu is allocatable, which is left out",
		"node n1 says that 1e30 of memory is allocatable, which is left out",
		"node n2 says that 9223372036854775807 of memory is allocatable, which is left out",
		"node n3 says that 9223372036854775807 of cpu is allocatable, which is left out",
		"node n4 says that -1 of cpu is allocatable, which is left out",
	}, sizes.Problems)
	require.Len(t, sizes.Shapes, 2)
	assert.Equal(t, "c5", sizes.Shapes[0].String())
	assert.Empty(t, sizes.Shapes[0].Available())
	assert.Equal(t, "cpu=8 memory=16Gi pods=58", text(sizes.Shapes[1].Available()))

	shape := onlyShape(t, sizesOf(node("n", "cpu", "m5", "cpu=8 memory=16Gi"), daemonSet("a/huge", "cpu=1e30 memory=9Ei")))
	assert.Equal(t, "a/huge", shape.TooLarge[0].Name)
}

func TestTaintsSeenAreSortedAndCountedOnce(t *testing.T) {
	since := func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = &metav1.Time{} }
	sizes := sizesOf(
		node("n1", "cpu", "m5", "cpu=1", tainted("b=1:NoSchedule", "a:NoExecute"), since),
		node("n2", "cpu", "m5", "", tainted("b=1:NoSchedule")),
		node("n3", "gpu", "m5", "cpu=1", tainted("c:NoSchedule")),
	)
	assert.Equal(t, parseTaints("a:NoExecute", "b=1:NoSchedule"), sizes.Taints)
}

func TestANodeMayBeOfTwoPoolsByDifferentLabels(t *testing.T) {
	cfg := pools("cpu")
	cfg.Pools = append(cfg.Pools, config.Pool{Name: "team", NodeLabel: &config.NodeLabel{Key: "team", Values: []string{"x", ""}}})
	sizes := sizing.NewTracker(cfg).Update(snapshot(
		node("n1", "cpu", "m5", "cpu=8", labelled("team", "x")), node("n2", "none", "m5", "cpu=4", labelled("team", "")), node("n3", "none", "m5", "cpu=2")))
	assert.Equal(t, 1, onlyShape(t, sizes.Pool("cpu")).Nodes)
	assert.Equal(t, 2, onlyShape(t, sizes.Pool("team")).Nodes)
	assert.Equal(t, "the pool is not configured", sizes.Pool("absent").Unknown)
}

func TestSizesStayAsTheyWere(t *testing.T) {
	tracker := sizing.NewTracker(pools("cpu"))
	facts := snapshot(node("n1", "cpu", "m5", "cpu=8"), node("n2", "cpu", "m5", "cpu=4"))
	before := tracker.Update(facts)
	next := *facts
	next.Nodes = next.Nodes.With(map[string]*corev1.Node{"n2": nil, "n3": node("n3", "cpu", "m5", "cpu=2", tainted("a:NoSchedule"))})
	after := tracker.Update(&next)
	assert.Equal(t, "cpu=4", text(onlyShape(t, before.Pool("cpu")).Available()))
	assert.Empty(t, before.Pool("cpu").Taints)
	assert.Equal(t, "cpu=2", text(onlyShape(t, after.Pool("cpu")).Available()))
}

func TestChangesOfWhatDaemonSetsAskForAreSeen(t *testing.T) {
	kata := func(s *corev1.PodSpec) { s.RuntimeClassName = new("kata") }
	facts := *snapshot(node("n", "cpu", "m5", "cpu=8", tainted("setup:NoSchedule")), daemonSet("a/ds", "", kata, everywhere), daemonSet("a/late", "cpu=1"))
	tracker := sizing.NewTracker(pools("cpu"))
	available := func() string {
		updated := facts
		return text(onlyShape(t, tracker.Update(&updated).Pool("cpu")).Available())
	}
	assert.Equal(t, "cpu=8", available())
	facts.RuntimeClasses = facts.RuntimeClasses.With(map[string]*nodev1.RuntimeClass{"kata": {Overhead: &nodev1.Overhead{PodFixed: list("cpu=2")}}})
	assert.Equal(t, "cpu=6", available())
	facts.LimitRanges = facts.LimitRanges.With(map[string]*corev1.LimitRange{"a/l": limitRange("a/l", corev1.LimitRangeItem{Max: list("cpu=3")})})
	assert.Equal(t, "cpu=3", available())
	facts.LimitRanges = facts.LimitRanges.With(map[string]*corev1.LimitRange{"b/l": limitRange("b/l", corev1.LimitRangeItem{Max: list("cpu=3")})})
	assert.Equal(t, "cpu=3", available())
	facts.NodePools = facts.NodePools.With(map[string]*cluster.NodePool{"cpu": {StartupTaints: parseTaints("setup:NoSchedule")}})
	assert.Equal(t, "cpu=2", available())
}
