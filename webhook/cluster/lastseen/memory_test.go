package lastseen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
)

const monday, tuesday = "2026-11-30", "2026-12-01"

func node(name, instanceType, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"a": "b"}, Labels: map[string]string{
			corev1.LabelInstanceTypeStable: instanceType, corev1.LabelHostname: name,
		}},
		Spec:   corev1.NodeSpec{ProviderID: "p", Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}
}

type pools = map[string][]*corev1.Node

func encoded(t *testing.T, m memory) map[string]string {
	t.Helper()
	data, err := m.encode()
	require.NoError(t, err)
	return data
}

func TestWhatIsKeptOfANode(t *testing.T) {
	m := memory(nil).merge(pools{"gpu": {node("n1", "g5.xlarge", "3920m")}, "cpu": nil}, monday)
	data := encoded(t, m)
	assert.Equal(t, map[string]string{
		"gpu": `{"g5.xlarge":{"day":"2026-11-30","name":"n1","labels":{"node.kubernetes.io/instance-type":"g5.xlarge"},"taints":[{"key":"gpu","effect":"NoSchedule"}],"allocatable":{"cpu":"3920m"}}}`,
	}, data)

	facts := Update(cluster.Facts[corev1.Node]{}, data)
	assert.True(t, facts.Known())
	assert.Equal(t, 1, facts.Len())
	want := node("n1", "g5.xlarge", "3920m")
	want.Annotations, want.Spec.ProviderID = nil, ""
	delete(want.Labels, corev1.LabelHostname)
	got := facts.Get("gpu/g5.xlarge")
	require.NotNil(t, got)
	assert.Equal(t, want.ObjectMeta, got.ObjectMeta)
	assert.Equal(t, want.Spec, got.Spec)
	assert.Equal(t, "3920m", got.Status.Allocatable.Cpu().String())
}

func TestMerge(t *testing.T) {
	first := memory(nil).merge(pools{"gpu": {node("n1", "a", "1"), node("n2", "a", "2"), node("n3", "b", "1")}, "cpu": {node("n4", "c", "1")}}, monday)
	assert.Equal(t, "n1", first["gpu"]["a"].Name, "the first of a type counts")
	before := encoded(t, first)

	second := first.merge(pools{"gpu": {node("n5", "b", "3"), node("n6", "d", "1")}}, tuesday)
	assert.Equal(t, before, encoded(t, first), "the old memory stays as it was")
	assert.Equal(t, []string{"gpu"}, slices.Collect(maps.Keys(second)), "pools that are not configured are forgotten")
	assert.Equal(t, []string{"a", "b", "d"}, slices.Sorted(maps.Keys(second["gpu"])))
	assert.Equal(t, first["gpu"]["a"], second["gpu"]["a"], "what is gone stays as it was")
	assert.Equal(t, "n5", second["gpu"]["b"].Name)
	assert.Equal(t, resource.MustParse("3"), second["gpu"]["b"].Allocatable[corev1.ResourceCPU])
	assert.Equal(t, tuesday, second["gpu"]["b"].Day)

	third := second.merge(pools{"gpu": nil}, tuesday)
	assert.Equal(t, encoded(t, second), encoded(t, third), "a pool scaled to zero keeps all")
}

func TestNodesThatOnlyHaveAnotherNameChangeNothing(t *testing.T) {
	first := memory(nil).merge(pools{"gpu": {node("n1", "a", "1")}}, monday)
	assert.Equal(t, encoded(t, first), encoded(t, first.merge(pools{"gpu": {node("n2", "a", "1000m")}}, monday)))
	restarted := memory(nil).merge(pools{"gpu": {node("n2", "a", "1")}}, monday)
	assert.Equal(t, encoded(t, first), encoded(t, restarted.upon(first)))
	bigger := memory(nil).merge(pools{"gpu": {node("n2", "a", "2")}}, monday)
	assert.Equal(t, encoded(t, bigger), encoded(t, bigger.upon(first)))
}

func TestUponKeepsTheLaterSight(t *testing.T) {
	stored := memory(nil).merge(pools{"gpu": {node("n1", "a", "1"), node("n2", "b", "1")}, "old": {node("n3", "c", "1")}}, tuesday)
	stale := memory(nil).merge(pools{"gpu": {node("n4", "a", "2")}}, monday)
	assert.Equal(t, memory{"gpu": stored["gpu"]}, stale.upon(stored))
	fresh := memory(nil).merge(pools{"gpu": {node("n4", "a", "2")}}, tuesday)
	assert.Equal(t, memory{"gpu": {"a": fresh["gpu"]["a"], "b": stored["gpu"]["b"]}}, fresh.upon(stored))
}

func TestOldTypesGoFirst(t *testing.T) {
	m := memory(nil)
	for i := range 30 {
		m = m.merge(pools{"gpu": {node("n", fmt.Sprintf("type-%02d", i), "1")}}, fmt.Sprintf("2026-01-%02d", i+1))
	}
	kept, malformed := parse(encoded(t, m))
	assert.Empty(t, malformed)
	types := slices.Sorted(maps.Keys(kept["gpu"]))
	require.Len(t, types, 20)
	assert.Equal(t, "type-10", types[0])
}

func TestTheConfigMapIsBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	m := memory{}
	for pool := range 30 {
		nodes := make([]*corev1.Node, 5)
		for i := range nodes {
			nodes[i] = node("n", fmt.Sprintf("type-%d", i), "1")
			nodes[i].Labels["long"] = long
		}
		m[fmt.Sprintf("pool-%02d", pool)] = memory(nil).merge(pools{"p": nodes}, fmt.Sprintf("2026-01-%02d", pool+1))["p"]
	}
	data := encoded(t, m)
	size := 0
	for pool, text := range data {
		size += len(pool) + len(text)
	}
	assert.LessOrEqual(t, size, 256<<10)
	assert.Greater(t, size, 240<<10)
	assert.Contains(t, data, "pool-29")
	assert.NotContains(t, data, "pool-00")

	huge := node("n", "huge", "1")
	huge.Labels["long"] = strings.Repeat("x", 300<<10)
	m = memory(nil).merge(pools{"gpu": {huge, node("n2", "small", "1")}}, monday)
	kept, _ := parse(encoded(t, m))
	assert.Equal(t, []string{"small"}, slices.Collect(maps.Keys(kept["gpu"])))
}

func TestUpdateChangesOnlyWhatDiffers(t *testing.T) {
	m := memory(nil).merge(pools{"gpu": {node("n1", "a", "1"), node("n2", "b", "1")}}, monday)
	first := Update(cluster.Unknown[corev1.Node]("not synced yet"), encoded(t, m))
	second := Update(first, encoded(t, m.merge(pools{"gpu": {node("n1", "a", "1"), node("n3", "c", "1")}}, tuesday)))
	keys, ok := second.ChangedSince(first)
	assert.True(t, ok)
	assert.Equal(t, []string{"gpu/c"}, keys, "another day is no difference")
	third := Update(second, nil)
	assert.True(t, third.Known())
	assert.Zero(t, third.Len())
	assert.Equal(t, 3, second.Len())
}

func TestUnreadableDataIsTold(t *testing.T) {
	facts := Update(cluster.Facts[corev1.Node]{}, map[string]string{
		"good":     `{"a":{"allocatable":{"cpu":1}}}`,
		"no-json":  `{"a":`,
		"quantity": `{"a":{"allocatable":{"cpu":"lots"}}}`,
		"list":     `[]`,
		"null":     `null`,
		"empty":    ``,
	})
	assert.Equal(t, []string{"empty", "list", "no-json", "quantity"}, facts.AllMalformed())
	assert.Contains(t, facts.Malformed("quantity"), "ConfigMap warmpool-last-seen: data.quantity: ")
	assert.Equal(t, 1, facts.Len())
	assert.Equal(t, "1", facts.Get("good/a").Status.Allocatable.Cpu().String())
}
