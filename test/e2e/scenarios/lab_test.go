package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/simulation"
	"warmpool.sh/webhook/prepull"
)

const (
	limit = 60 * time.Second // for anything that is waited for
	steps = 1200             // how often it is looked at meanwhile

	preempted = corev1.PodReasonPreemptionByScheduler
	evicted   = "EvictionByEvictionAPI"
	beside    = 4  // cores of a Workspace that fits three times beside a placeholder of 2, of the 15.9 of a node
	alone     = 14 // of one that has no room there
)

// images are those of the templates.
var images = map[string]string{"cpu": simulation.CPUImage, "gpu": simulation.GPUImage}

// lab is the cluster, with how many evictions there had been when the scenario began.
type lab struct {
	*simulation.Cluster
	before int
}

// begin has the pool of a kind be this many nodes with a warm placeholder each, and no Workspaces at all.
func (l *lab) begin(t *testing.T, kind string, count int) {
	t.Helper()
	l.beginWithin(t, limit, kind, count)
}

func (l *lab) beginWithin(t *testing.T, limit time.Duration, kind string, count int) {
	t.Helper()
	l.want(t, kind, count)
	await.NoProblem(t, limit, "a pool of warm nodes", func() string {
		if pods := l.pods(t, simulation.Team); len(pods) > 0 {
			return fmt.Sprintf("%d pods of Workspaces are left", len(pods))
		}
		warm := l.warm(t, kind)
		if len(warm) != count {
			return fmt.Sprintf("%d of %d placeholders are warm", len(warm), count)
		}
		nodes := l.nodes(t, kind)
		for i := range nodes {
			if !slices.Contains(warm, nodes[i].Name) && nodes[i].DeletionTimestamp == nil {
				require.NoError(t, client.IgnoreNotFound(l.Admin.Delete(t.Context(), &nodes[i])))
			}
		}
		if claims := l.claims(t, kind); len(nodes) != count || claims != count {
			return fmt.Sprintf("%d nodes and %d NodeClaims instead of %d", len(nodes), claims, count)
		}
		return ""
	})
	l.before = len(l.Book.Evictions())
}

// want has CPA ask for this many placeholders.
func (l *lab) want(t *testing.T, kind string, count int) {
	t.Helper()
	linear := fmt.Sprintf(`{"nodesPerReplica": 1000, "min": %d, "max": %d, "preventSinglePointFailure": true, "includeUnschedulableNodes": false}`, count, count)
	parameters := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: simulation.Placeholders, Name: "spaces-overprovision-cpa-config-" + kind}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data": {"linear": %q}}`, linear))
	require.NoError(t, l.Admin.Patch(t.Context(), parameters, patch))
}

// nodePool changes the spec of a NodePool.
func (l *lab) nodePool(t *testing.T, name, spec string) {
	t.Helper()
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"})
	pool.SetName(name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": `+spec+`}`))
	require.NoError(t, l.Admin.Patch(context.WithoutCancel(t.Context()), pool, patch))
}

func (l *lab) pods(t *testing.T, namespace string, options ...client.ListOption) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, l.Admin.List(t.Context(), &list, append(options, client.InNamespace(namespace))...))
	return list.Items
}

// podOf is the pod of a Workspace.
func (l *lab) podOf(t *testing.T, s simulation.Startup) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	require.NoError(t, l.Admin.Get(t.Context(), client.ObjectKey{Namespace: simulation.Team, Name: s.Pod}, &pod))
	return &pod
}

// placeholders are the pods of a kind that are not to end.
func (l *lab) placeholders(t *testing.T, kind string) []corev1.Pod {
	t.Helper()
	pods := l.pods(t, simulation.Placeholders, client.MatchingLabels{"app": "spaces-placeholder", "type": kind})
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// warm are the nodes with a placeholder that warmpool says is warm.
func (l *lab) warm(t *testing.T, kind string) (nodes []string) {
	t.Helper()
	for _, pod := range l.placeholders(t, kind) {
		if pod.Labels[prepull.WarmLabel] == prepull.WarmTrue && pod.Labels[prepull.ImageLabel(images[kind])] == "true" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// refilled waits until this many placeholders are warm and gives their nodes.
func (l *lab) refilled(t *testing.T, kind string, count int) (nodes []string) {
	t.Helper()
	await.NoProblem(t, limit, "the placeholders are warm again", func() string {
		if nodes = l.warm(t, kind); len(nodes) != count {
			return fmt.Sprintf("%d of %d", len(nodes), count)
		}
		return ""
	})
	return nodes
}

func (l *lab) nodes(t *testing.T, kind string) []corev1.Node {
	t.Helper()
	var list corev1.NodeList
	require.NoError(t, l.Admin.List(t.Context(), &list, client.MatchingLabels{simulation.PoolLabel: simulation.PoolPrefix + kind}))
	return list.Items
}

func (l *lab) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	var node corev1.Node
	require.NoError(t, l.Admin.Get(t.Context(), client.ObjectKey{Name: name}, &node))
	return &node
}

// claims counts the NodeClaims of a pool: nodes, and what is to become one.
func (l *lab) claims(t *testing.T, kind string) int {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaimList"})
	require.NoError(t, l.Admin.List(t.Context(), &list, client.MatchingLabels{simulation.PoolLabel: simulation.PoolPrefix + kind}))
	return len(list.Items)
}

// create makes a Workspace, as change has it, which ends with the test.
func (l *lab) create(t *testing.T, w simulation.Workspace, change func(*corev1.PodSpec)) {
	t.Helper()
	w.Image = images[w.Kind]
	deployment := w.Deployment()
	if change != nil {
		change(&deployment.Spec.Template.Spec)
	}
	require.NoError(t, l.Admin.Create(t.Context(), deployment))
	t.Cleanup(func() { l.remove(t, w.Name) })
}

func (l *lab) remove(t *testing.T, name string) {
	t.Helper()
	assert.NoError(t, client.IgnoreNotFound(l.Delete(context.WithoutCancel(t.Context()), name)))
}

// one makes a Workspace and waits until it runs.
func (l *lab) one(t *testing.T, w simulation.Workspace, change func(*corev1.PodSpec)) simulation.Startup {
	t.Helper()
	l.create(t, w, change)
	return l.started(t, w.Name)[0]
}

// started waits until Workspaces run, and logs the line of figures.
func (l *lab) started(t *testing.T, names ...string) []simulation.Startup {
	t.Helper()
	starts, err := l.WaitRunning(t.Context(), limit, names...)
	require.NoError(t, err)
	l.figures(t, starts)
	return starts
}

// madeRoom waits until this many pods had to make room since the scenario began, asserts that all that did were
// placeholders, for this reason, and gives their number.
func (l *lab) madeRoom(t *testing.T, count int, reason string) int {
	t.Helper()
	var all []simulation.Eviction
	await.NoProblem(t, limit, "evictions", func() string {
		if all = l.Book.Evictions()[l.before:]; len(all) < count {
			return fmt.Sprintf("%d of %d: %v", len(all), count, all)
		}
		return ""
	})
	for _, e := range all {
		assert.Empty(t, e.Workspace)
		assert.Equal(t, reason, e.Reason)
		assert.True(t, strings.HasPrefix(e.Pod, "spaces-placeholder-"), e.Pod)
	}
	return len(all)
}

// onlyPlaceholders asserts that exactly this many had to make room, and nothing else.
func (l *lab) onlyPlaceholders(t *testing.T, count int, reason string) {
	t.Helper()
	assert.Equal(t, count, l.madeRoom(t, count, reason))
}

// metric is the sum of warmpool's samples of this name whose labels contain all parts.
func (l *lab) metric(t *testing.T, name string, parts ...string) int {
	t.Helper()
	value, _, err := install.Metric(t.Context(), l.Warmpool.MetricsURL, name, parts...)
	require.NoError(t, err)
	return int(value)
}

// counted has play start Workspaces, and waits until warmpool has counted this many more of a pool, path and cause.
func (l *lab) counted(t *testing.T, kind, path, cause string, count int, play func()) {
	t.Helper()
	const name = "warmpool_workspace_starts_total"
	labels := []string{fmt.Sprintf("cause=%q", cause), fmt.Sprintf("path=%q", path), fmt.Sprintf("pool=%q", kind)}
	before, all := l.metric(t, name, labels...), l.metric(t, name)
	play()
	await.NoProblem(t, limit, "warmpool counts the starts", func() string {
		if now := l.metric(t, name, labels...) - before; now != count {
			return fmt.Sprintf("%d of %d with %v, %d of all", now, count, labels, l.metric(t, name)-all)
		}
		return ""
	})
}

// cpaOf is the Deployment of the autoscaler as it ships; it is played.
func (l *lab) cpaOf(kind string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: simulation.Placeholders, Name: "spaces-overprovisioning-cpa-" + kind}}
}
