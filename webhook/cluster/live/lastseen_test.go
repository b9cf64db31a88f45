package live

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func seenIn(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warmpool-system", Name: "warmpool-last-seen"}, Data: data}
}

func TestLastSeenIsReadFromItsConfigMap(t *testing.T) {
	told := &journal{}
	r := newReader(told.logger().WithName("cluster"))
	r.follow(r.newLastSeen())
	assert.Equal(t, "not synced yet", r.Snapshot().LastSeen.Reason())
	for _, s := range r.kinds() {
		s.synced(s.reset(notSynced, false))
	}
	source := r.builtin[len(r.builtin)-1]
	generation := source.reset(notSynced, false)
	r.rebuild()
	assert.False(t, r.Synced(), "admissions wait for it")
	source.synced(generation)
	r.rebuild()
	assert.True(t, r.Synced())
	assert.True(t, r.Snapshot().LastSeen.Known(), "without a ConfigMap nothing has been seen")
	assert.Zero(t, r.Snapshot().LastSeen.Len())

	handler := source.handler(generation)
	handler.OnAdd(seenIn(map[string]string{"gpu": `{"g5.xlarge":{"name":"n1","allocatable":{"cpu":"3920m"}}}`, "cpu": `{`}), false)
	r.rebuild()
	first := r.Snapshot().LastSeen
	require.NotNil(t, first.Get("gpu/g5.xlarge"))
	assert.Equal(t, "3920m", first.Get("gpu/g5.xlarge").Status.Allocatable.Cpu().String())
	assert.NotEmpty(t, first.Malformed("cpu"))
	assert.Equal(t, 1, told.count("cannot read what nodes of a pool looked like"))

	handler.OnUpdate(nil, seenIn(map[string]string{"gpu": `{"g5.xlarge":{"name":"n1","allocatable":{"cpu":"3920m"}},"g5.2xlarge":{}}`, "cpu": `{`}))
	r.rebuild()
	keys, ok := r.Snapshot().LastSeen.ChangedSince(first)
	assert.True(t, ok)
	assert.Equal(t, []string{"gpu/g5.2xlarge"}, keys)
	assert.Equal(t, 1, told.count("cannot read what nodes of a pool looked like"), "told once")

	handler.OnDelete(seenIn(nil))
	r.rebuild()
	assert.True(t, r.Snapshot().LastSeen.Known())
	assert.Zero(t, r.Snapshot().LastSeen.Len())
}

func TestFactsTellWhatChangedBetweenSnapshots(t *testing.T) {
	r, handlers := syncedReader(logr.Discard())
	handlers[nodes].OnAdd(node("n1", "1"), false)
	handlers[nodes].OnAdd(node("n2", "1"), false)
	r.rebuild()
	before := r.Snapshot()

	tainted := node("n2", "2")
	tainted.Spec.Unschedulable = true
	handlers[nodes].OnUpdate(nil, tainted)
	handlers[nodes].OnDelete(node("n1", "1"))
	handlers[nodes].OnAdd(node("n3", "1"), false)
	r.rebuild()
	after := r.Snapshot()
	keys, ok := after.Nodes.ChangedSince(before.Nodes)
	assert.True(t, ok)
	assert.Equal(t, []string{"n1", "n2", "n3"}, keys)
	keys, ok = after.DaemonSets.ChangedSince(before.DaemonSets)
	assert.True(t, ok)
	assert.Empty(t, keys, "other kinds are shared")

	s := r.kinds()[nodes]
	generation := s.reset(notSynced, false)
	s.handler(generation).OnAdd(node("n4", "1"), true)
	s.synced(generation)
	r.rebuild()
	assert.Equal(t, 1, r.Snapshot().Nodes.Len())
	_, ok = r.Snapshot().Nodes.ChangedSince(after.Nodes)
	assert.False(t, ok, "listed anew")
}

func TestMalformedReasonsOfOldSnapshotsStay(t *testing.T) {
	r, handlers := syncedReader(logr.Discard())
	bad := func(name string, label any) any { return nodePool(name, map[string]any{"team": label}) }
	handlers[pools].OnAdd(bad("a", int64(7)), false)
	r.rebuild()
	first := r.Snapshot().NodePools
	handlers[pools].OnAdd(bad("b", int64(7)), false)
	handlers[pools].OnUpdate(nil, bad("a", true))
	r.rebuild()
	second := r.Snapshot().NodePools
	assert.Equal(t, []string{"a"}, first.AllMalformed())
	assert.Contains(t, first.Malformed("a"), "number")
	assert.Equal(t, []string{"a", "b"}, second.AllMalformed())
	assert.Contains(t, second.Malformed("a"), "bool")
	keys, ok := second.ChangedSince(first)
	assert.True(t, ok)
	assert.Equal(t, []string{"a", "b"}, keys, "what is malformed in another way is another fact")
}
