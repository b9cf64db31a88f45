package live

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// hostile are objects that are far larger than real ones, each in its own way.
func hostile() map[string]client.Object {
	large, many := strings.Repeat("x", 1<<20), map[string]string{}
	for i := range 20_000 {
		many[fmt.Sprint("example.com/k", i)] = ""
	}
	meta := metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"warmpool.sh/pool": "cpu"}}
	deployment := func(spec corev1.PodSpec) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{Spec: spec}}}
	}
	terms := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 100_000),
	}}}
	daemons := &appsv1.DaemonSet{ObjectMeta: meta}
	daemons.Spec.Template.Spec.Affinity = terms
	template := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "team", "name": "a", "uid": "u", "resourceVersion": "7"}, "spec": map[string]any{"defaultImage": large}}}
	template.SetGroupVersionKind(cluster.WorkspaceTemplateGroupKind.WithVersion("v1alpha1"))
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n", NodeSelector: many, Containers: make([]corev1.Container, 2000), Affinity: terms}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	return map[string]client.Object{
		"one large string":  deployment(corev1.PodSpec{Containers: []corev1.Container{{Args: []string{large}}}}),
		"a list of nothing": deployment(corev1.PodSpec{Affinity: terms}),
		"a map of nothing":  deployment(corev1.PodSpec{NodeSelector: many}),
		"a DaemonSet":       daemons,
		"a template":        template,
		"a pod":             pod,
	}
}

func TestHostileObjectsAreKeptByNameAlone(t *testing.T) {
	for name, object := range hostile() {
		t.Run(name, func(t *testing.T) {
			transforms := []toolscache.TransformFunc{bounded(keepCustom)}
			switch object.(type) {
			case *appsv1.Deployment:
				transforms = append(transforms, bounded(keep(cluster.Deployments, candidate)))
			case *appsv1.DaemonSet:
				transforms = append(transforms, bounded(keep(cluster.DaemonSets, nil)))
			case *corev1.Pod:
				transforms = append(transforms, WorkspacePod, bounded(keep(cluster.Pods, nil)))
			}
			for _, transform := range transforms {
				copied, ok := object.DeepCopyObject().(client.Object)
				require.True(t, ok)
				kept := transformed(t, transform, copied)
				assert.True(t, isTooLarge(kept))
				assert.Equal(t, []string{"team", "a", "7"}, []string{kept.GetNamespace(), kept.GetName(), kept.GetResourceVersion()})
				if pod, ok := kept.(*corev1.Pod); ok {
					assert.Equal(t, "u", string(pod.UID))
					assert.Equal(t, "n", pod.Spec.NodeName)
					assert.Equal(t, corev1.PodRunning, pod.Status.Phase)
				}
			}
		})
	}
}

// What is measured as the size of an object is about the memory that it takes.
func TestSizeIsThatOfMemory(t *testing.T) {
	const n = 200
	kept := make([]any, 0, n)
	before, after := runtime.MemStats{}, runtime.MemStats{}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		labels := map[string]string{}
		for i := range 200 {
			labels[fmt.Sprint("example.com/label-", i)] = fmt.Sprint("value-", i)
		}
		kept = append(kept, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, 5)}})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / n
	measured := float64(maxKept - size(reflect.ValueOf(kept[0]), maxKept))
	assert.InEpsilon(t, each, measured, 0.5)
	runtime.KeepAlive(kept)
}

// What is too large is said once for all, and counted; nothing of it is in the log.
func TestTooLargeObjectsAreCounted(t *testing.T) {
	var lines []string
	r := newReader(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	deployments := r.newKind(cluster.Deployments)
	generation := deployments.reset(notSynced, false)
	handler := deployments.handler(generation)
	var all []any
	for i := range 50 {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("d", i), Annotations: map[string]string{"a": strings.Repeat("canary", 1<<15)}}}
		d.Labels = map[string]string{"warmpool.sh/pool": "cpu"}
		kept, err := bounded(keep(cluster.Deployments, candidate))(d)
		require.NoError(t, err)
		handler.OnAdd(kept, true)
		all = append(all, kept)
	}
	deployments.synced(generation)
	next := cluster.Snapshot{}
	deployments.refresh(&next)
	assert.Equal(t, errTooLarge.Error(), next.Deployments.Malformed("team/d7"))
	assert.InDelta(t, 50, testutil.ToFloat64(tooLargeObjects.WithLabelValues("Deployment")), 0)
	assert.Len(t, lines, 3)
	assert.NotContains(t, strings.Join(lines, "\n"), "canary")
	for _, d := range all {
		handler.OnDelete(d)
	}
	assert.InDelta(t, 0, testutil.ToFloat64(tooLargeObjects.WithLabelValues("Deployment")), 0)
}
