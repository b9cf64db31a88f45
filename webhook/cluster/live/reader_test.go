package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"warmpool.sh/webhook/cluster"
)

func node(name, version string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, Labels: map[string]string{"pool": "a"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(time.Now())}},
		},
	}
}

// syncedReader has listed every kind and found nothing; handlers are in the order of the kinds.
func syncedReader(log logr.Logger) (*Reader, []cache.ResourceEventHandler) {
	r := newReader(log)
	var handlers []cache.ResourceEventHandler
	for _, s := range r.kinds() {
		generation := s.reset(notSynced, false)
		handlers = append(handlers, s.handler(generation))
		s.synced(generation)
	}
	r.rebuild()
	return r, handlers
}

const nodes, pools = 0, 7 // places among the kinds

func TestNothingIsKnownBeforeTheFirstList(t *testing.T) {
	r := newReader(logr.Discard())
	require.NotNil(t, r.Snapshot())
	assert.False(t, r.Synced())
	for _, reason := range []string{
		r.Snapshot().Nodes.Reason(), r.Snapshot().NodePools.Reason(), r.Snapshot().PriorityClasses.Reason(),
		r.Snapshot().Namespaces.Reason(), r.Snapshot().Templates.Reason(), r.Snapshot().Deployments.Reason(),
		r.Snapshot().DaemonSets.Reason(), r.Snapshot().LimitRanges.Reason(), r.Snapshot().RuntimeClasses.Reason(),
		r.Snapshot().NodeClaims.Reason(),
	} {
		assert.Equal(t, "not synced yet", reason)
	}
}

func TestObjectsBeforeTheListIsCompleteAreNotShown(t *testing.T) {
	r := newReader(logr.Discard())
	s := r.kinds()[nodes]
	generation := s.reset(notSynced, false)
	s.handler(generation).OnAdd(node("n1", "1"), true)
	before := r.Snapshot()
	r.rebuild()
	assert.Same(t, before, r.Snapshot())

	s.synced(generation)
	r.rebuild()
	assert.NotNil(t, r.Snapshot().Nodes.Get("n1"))
	assert.False(t, r.Synced(), "the other kinds are not listed")
}

func TestSyncedOnceEveryKindIsListedOrAbsent(t *testing.T) {
	r := newReader(logr.Discard())
	for i, s := range r.kinds() {
		assert.False(t, r.Synced())
		if i == pools {
			s.reset("no NodePool CRD (karpenter.sh) in the cluster", true)
		} else {
			s.synced(s.reset(notSynced, false))
		}
		r.rebuild()
	}
	assert.True(t, r.Synced())
	assert.Equal(t, "no NodePool CRD (karpenter.sh) in the cluster", r.Snapshot().NodePools.Reason())
	assert.True(t, r.Snapshot().Templates.Known())

	r.kinds()[pools].reset(notSynced, false)
	r.rebuild()
	assert.True(t, r.Synced(), "a CRD that comes later makes no replica unready")
}

func TestHeartbeatsDoNotRebuild(t *testing.T) {
	r, handlers := syncedReader(logr.Discard())
	first := transformed(t, keep(cluster.Nodes, nil), node("n1", "1"))
	handlers[nodes].OnAdd(first, false)
	r.rebuild()
	before := r.Snapshot()

	handlers[nodes].OnUpdate(first, transformed(t, keep(cluster.Nodes, nil), node("n1", "2")))
	r.rebuild()
	assert.Same(t, before, r.Snapshot(), "only version and heartbeat differ")

	tainted := node("n1", "3")
	tainted.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	handlers[nodes].OnUpdate(first, tainted)
	r.rebuild()
	assert.NotSame(t, before, r.Snapshot())
	assert.Empty(t, before.Nodes.Get("n1").Spec.Taints, "an old Snapshot does not change")
	assert.Len(t, r.Snapshot().Nodes.Get("n1").Spec.Taints, 1)
}

func TestRebuildSharesObjectsAndOtherKinds(t *testing.T) {
	r, handlers := syncedReader(logr.Discard())
	handlers[nodes].OnAdd(node("n1", "1"), false)
	r.rebuild()
	before := r.Snapshot()
	handlers[nodes].OnAdd(node("n2", "1"), false)
	r.rebuild()
	assert.Same(t, before.Nodes.Get("n1"), r.Snapshot().Nodes.Get("n1"))
	assert.Equal(t, 1, before.Nodes.Len())
	assert.Equal(t, 2, r.Snapshot().Nodes.Len())
}

func TestDeletionsAlsoByTombstone(t *testing.T) {
	r, handlers := syncedReader(logr.Discard())
	for _, name := range []string{"n1", "n2", "n3"} {
		handlers[nodes].OnAdd(node(name, "1"), false)
	}
	handlers[nodes].OnDelete(node("n1", "2"))
	handlers[nodes].OnDelete(cache.DeletedFinalStateUnknown{Key: "n2", Obj: node("n2", "1")})
	handlers[nodes].OnDelete(cache.DeletedFinalStateUnknown{Key: "n4"})
	handlers[nodes].OnDelete("nonsense")
	handlers[nodes].OnAdd("nonsense", false)
	r.rebuild()
	assert.Equal(t, 1, r.Snapshot().Nodes.Len())
	assert.NotNil(t, r.Snapshot().Nodes.Get("n3"))
}

func TestListenersHearOfChangesOnly(t *testing.T) {
	r, handlers := syncedReader(logr.Discard())
	var heard []*cluster.Snapshot
	r.OnChange(func(s *cluster.Snapshot) { heard = append(heard, s) })
	r.rebuild()
	assert.Empty(t, heard)
	handlers[nodes].OnAdd(node("n1", "1"), false)
	handlers[nodes].OnAdd(node("n2", "1"), false)
	r.rebuild()
	require.Len(t, heard, 1, "a burst is one change")
	assert.Same(t, r.Snapshot(), heard[0])
}

func nodePool(name string, labels any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": labels}}},
	}}
}

func TestMalformedObjectsAreLeftOutAndTold(t *testing.T) {
	var lines []string
	r, handlers := syncedReader(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	lines = nil
	good, bad := map[string]any{"team": "ml"}, map[string]any{"team": int64(7)}
	handlers[pools].OnAdd(nodePool("good", good), false)
	handlers[pools].OnAdd(nodePool("bad", bad), false)
	handlers[pools].OnUpdate(nil, nodePool("bad", bad))
	r.rebuild()
	facts := r.Snapshot().NodePools
	assert.True(t, facts.Known())
	assert.NotNil(t, facts.Get("good"))
	assert.Nil(t, facts.Get("bad"))
	assert.Equal(t, "read NodePool: spec.template.metadata.labels.team: got a value of type number, want a string (put the value in quotes)", facts.Malformed("bad"))
	require.Len(t, lines, 1, "told once: %v", lines)
	assert.Contains(t, lines[0], `"kind"="NodePool" "object"="bad"`)

	handlers[pools].OnUpdate(nil, nodePool("bad", good))
	handlers[pools].OnUpdate(nil, nodePool("good", bad))
	r.rebuild()
	facts = r.Snapshot().NodePools
	assert.NotNil(t, facts.Get("bad"))
	assert.Empty(t, facts.Malformed("bad"))
	assert.Nil(t, facts.Get("good"), "what it was before is not true any more")
	assert.NotEmpty(t, facts.Malformed("good"))

	handlers[pools].OnDelete(nodePool("good", bad))
	r.rebuild()
	assert.Empty(t, r.Snapshot().NodePools.Malformed("good"))
}

func TestEventsOfAStoppedInformerAreIgnored(t *testing.T) {
	r, handlers := syncedReader(logr.Discard())
	r.kinds()[pools].reset("no NodePool CRD (karpenter.sh) in the cluster", true)
	handlers[pools].OnAdd(nodePool("late", nil), false)
	handlers[pools].OnDelete(nodePool("late", nil))
	r.rebuild()
	assert.False(t, r.Snapshot().NodePools.Known())
	s := r.kinds()[pools]
	s.synced(s.reset(notSynced, false))
	r.rebuild()
	assert.Zero(t, r.Snapshot().NodePools.Len())
}

func TestTheSnapshotIsMadeLessOftenWhereThatCostsMuch(t *testing.T) {
	r := newReader(logr.Discard())
	for took, pause := range map[time.Duration]time.Duration{
		100 * time.Microsecond: 25 * time.Millisecond, 5 * time.Millisecond: 245 * time.Millisecond, time.Second: 500 * time.Millisecond,
	} {
		assert.Equal(t, pause, r.pause(took))
	}
}

func TestEveryReplicaReads(t *testing.T) {
	assert.False(t, newReader(logr.Discard()).NeedLeaderElection())
}

// One node's change must cost the same in every cluster, but for the depth of the tree.
func BenchmarkRebuild(b *testing.B) {
	for _, size := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("%d nodes", size), func(b *testing.B) {
			r, handlers := syncedReader(logr.Discard())
			for i := range size {
				handlers[nodes].OnAdd(node(fmt.Sprintf("node-%05d", i), "1"), false)
			}
			r.rebuild()
			var turns [2]*corev1.Node
			for i := range turns {
				turns[i] = node("node-00001", "2")
				turns[i].Labels["turn"] = strings.Repeat("x", i)
			}
			before := r.Snapshot()
			i := 0
			for b.Loop() {
				i++
				handlers[nodes].OnUpdate(nil, turns[i%2])
				r.rebuild()
			}
			require.NotSame(b, before, r.Snapshot())
			require.Equal(b, size, r.Snapshot().Nodes.Len())
		})
	}
}
