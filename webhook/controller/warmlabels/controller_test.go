package warmlabels

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

// rig is a Controller with pods of the placeholder cpu-warm, at a time that passes only when a test says so.
type rig struct {
	client.Writer
	t          testing.TB
	controller *Controller
	now        time.Time
	config     *config.WarmPoolConfiguration
	deployment *appsv1.Deployment
	// server has the pods as the API server has them, seen as the watch has brought them: late keeps that from coming.
	server, seen map[string]*corev1.Pod
	late         bool
	// fails is what the API server answers to writes.
	fails   error
	version int
	patches []string
}

func newRig(t testing.TB, pods ...*corev1.Pod) *rig {
	t.Helper()
	cfg, err := config.Load([]byte("apiVersion: config.warmpool.sh/v1alpha1\nkind: WarmPoolConfiguration\npools: [{name: cpu, nodePools: [cpu-a]}]\n"), policy.IDs())
	require.NoError(t, err)
	r := &rig{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), config: cfg, server: map[string]*corev1.Pod{}, seen: map[string]*corev1.Pod{}}
	r.deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "overprovisioning", Name: "cpu-warm", Labels: map[string]string{"warmpool.sh/pool": "cpu"}},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ph"}}},
	}
	for i, pod := range pods {
		pod.Namespace, pod.Name = "overprovisioning", "cpu-warm-6d5f-"+strconv.Itoa(i)
		pod.UID = types.UID(pod.Name)
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "cpu-warm-6d5f", Controller: new(true)}}
		r.put(pod)
	}
	r.controller = &Controller{log: logr.Discard(), source: r.evaluator, writer: r, now: func() time.Time { return r.now }, writes: map[types.NamespacedName]written{}, occupants: occupied(nil)}
	return r
}

func (r *rig) put(pod *corev1.Pod) {
	r.version++
	pod.ResourceVersion = strconv.Itoa(99 + r.version)
	r.server[pod.Namespace+"/"+pod.Name] = pod
	if !r.late {
		r.seen[pod.Namespace+"/"+pod.Name] = pod
	}
}

func (r *rig) evaluator() *policy.Evaluator {
	e, err := policy.New(r.config, &cluster.Snapshot{
		Deployments:     cluster.Known(map[string]*appsv1.Deployment{"overprovisioning/cpu-warm": r.deployment}),
		PlaceholderPods: cluster.Known(r.seen),
	}, r.now)
	require.NoError(r.t, err)
	return e
}

// look does what follows a change of the Snapshot; it gives the time after which a pod is to be looked at again.
func (r *rig) look() (after time.Duration) {
	for _, key := range r.controller.scan(r.evaluator()) {
		result, err := r.controller.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: key})
		require.ErrorIs(r.t, err, r.fails)
		after = max(after, result.RequeueAfter)
	}
	return after
}

// Patch is the API server's.
func (r *rig) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	assert.Equal(r.t, types.MergePatchType, patch.Type())
	data, err := patch.Data(object)
	require.NoError(r.t, err)
	r.patches = append(r.patches, string(data))
	pod := r.server[object.GetNamespace()+"/"+object.GetName()]
	if r.fails != nil {
		return r.fails
	}
	if pod == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, object.GetName())
	}
	var body struct {
		Metadata struct {
			UID         types.UID
			Labels      map[string]*string
			Annotations map[string]*string
		}
	}
	require.NoError(r.t, json.Unmarshal(data, &body))
	if body.Metadata.UID != pod.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("another uid"))
	}
	pod = pod.DeepCopy()
	for key, value := range body.Metadata.Labels {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		if delete(pod.Labels, key); value != nil {
			pod.Labels[key] = *value
		}
	}
	for key, value := range body.Metadata.Annotations {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		if delete(pod.Annotations, key); value != nil {
			pod.Annotations[key] = *value
		}
	}
	r.put(pod)
	object.SetResourceVersion(pod.ResourceVersion)
	return nil
}

func (r *rig) labels(i int) map[string]string {
	return r.server["overprovisioning/cpu-warm-6d5f-"+strconv.Itoa(i)].Labels
}

// status changes a pod as its kubelet does.
func (r *rig) status(i int, statuses ...corev1.ContainerStatus) {
	pod := r.server["overprovisioning/cpu-warm-6d5f-"+strconv.Itoa(i)].DeepCopy()
	pod.Status = pulls(statuses...).Status
	r.put(pod)
}

func warmLabels() map[string]string {
	return map[string]string{prepull.WarmLabel: "true", prepull.ImageLabel(one): "true"}
}

func TestOnePatchForEachChange(t *testing.T) {
	r := newRig(t, pulls(waits("PodInitializing")), pulls(ended(0, "Completed")))
	r.look()
	r.look()
	require.Equal(t, []string{`{"metadata":{"labels":{"` + prepull.ImageLabel(one) + `":"true","warmpool.sh/warm":"true"},"uid":"cpu-warm-6d5f-1"}}`}, r.patches)
	assert.Empty(t, r.labels(0))
	assert.Equal(t, warmLabels(), r.labels(1))

	r.status(1, last(running(), 0, "Completed", 1))
	r.look()
	require.Len(t, r.patches, 2)
	assert.Equal(t, `{"metadata":{"labels":{"`+prepull.ImageLabel(one)+`":null,"warmpool.sh/warm":null},"uid":"cpu-warm-6d5f-1"}}`, r.patches[1])
	assert.Empty(t, r.labels(1))
}

// A leader that begins finds the labels that are right, and writes none of these again.
func TestANewLeaderGoesOn(t *testing.T) {
	r := newRig(t, pulls(ended(0, "Completed")), pulls(waits("ImagePullBackOff")))
	r.look()
	require.Len(t, r.patches, 2)
	r.status(1, waits("ErrImagePull"))
	next := newRig(t)
	next.seen, next.server, next.version = r.seen, r.server, r.version
	next.look()
	assert.Empty(t, next.patches)
	next.status(1, ended(0, "Completed"))
	next.look()
	assert.Len(t, next.patches, 1)
	assert.Equal(t, warmLabels(), next.labels(1))
}

// What was written is not written again because the watch has not brought it yet; nor is it waited for permanently.
func TestTheWatchIsLate(t *testing.T) {
	r := newRig(t, pulls(ended(0, "Completed")))
	r.late = true
	assert.Zero(t, r.look())
	require.Len(t, r.patches, 1)
	assert.Equal(t, echo, r.look())
	r.now = r.now.Add(echo - time.Second)
	assert.Equal(t, time.Second, r.look())
	require.Len(t, r.patches, 1)
	r.now = r.now.Add(time.Second)
	assert.Zero(t, r.look())
	assert.Len(t, r.patches, 2)
}

func TestPodsThatAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*rig, *corev1.Pod){
		"is deleted":          func(_ *rig, p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) },
		"was evicted":         func(_ *rig, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"of a Job":            func(_ *rig, p *corev1.Pod) { p.OwnerReferences[0].Kind = "Job" },
		"of nobody":           func(_ *rig, p *corev1.Pod) { p.OwnerReferences = nil },
		"of another":          func(_ *rig, p *corev1.Pod) { p.OwnerReferences[0].Name = "cpa-6d5f" },
		"of a bare set":       func(_ *rig, p *corev1.Pod) { p.OwnerReferences[0].Name = "set" },
		"of no placeholder":   func(r *rig, _ *corev1.Pod) { r.deployment.Labels = nil },
		"of a Workspace":      func(r *rig, _ *corev1.Pod) { r.deployment.Labels["workspace.jupyter.org/workspace-name"] = "w" },
		"of other namespaces": func(r *rig, _ *corev1.Pod) { r.deployment.Namespace = "elsewhere" },
		"selected by a label": func(r *rig, _ *corev1.Pod) { r.deployment.Spec.Selector.MatchLabels[prepull.WarmLabel] = "true" },
		"selected by an expression": func(r *rig, _ *corev1.Pod) {
			r.deployment.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: prepull.ImageLabel(one), Operator: metav1.LabelSelectorOpDoesNotExist}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := pulls(ended(0, "Completed"))
			r := newRig(t, pod)
			change(r, pod)
			assert.Empty(t, r.controller.scan(r.evaluator()))
			_, err := r.controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
			require.NoError(t, err)
			assert.Empty(t, r.patches)
		})
	}
}

func TestWritesThatFail(t *testing.T) {
	r := newRig(t, pulls(ended(0, "Completed")))
	r.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("no"))
	r.look() // the queue tries again
	r.fails = nil
	r.look()
	assert.Equal(t, warmLabels(), r.labels(0))

	t.Run("a pod made again under the name is another", func(t *testing.T) {
		r := newRig(t, pulls(ended(0, "Completed")))
		r.late = true
		again := pulls(waits("PodInitializing"))
		again.Namespace, again.Name, again.UID = "overprovisioning", "cpu-warm-6d5f-0", "other"
		r.put(again)
		r.look()
		assert.Empty(t, r.labels(0))
	})
	t.Run("a pod that is gone", func(t *testing.T) {
		r := newRig(t, pulls(ended(0, "Completed")))
		clear(r.server)
		r.look()
		assert.Len(t, r.patches, 1)
	})
}

func TestGauge(t *testing.T) {
	r := newRig(t, pulls(ended(0, "Completed")), pulls(ended(0, "Completed")), pulls(running()), pulls(waits("InvalidImageName")),
		changed(pulls(waits("")), func(p *corev1.Pod) { p.Spec.NodeName = "" }))
	r.look()
	shows := func(want map[state]float64) {
		t.Helper()
		for _, s := range states {
			assert.InDelta(t, want[s], testutil.ToFloat64(placeholders.WithLabelValues("cpu", string(s))), 0, string(s))
		}
	}
	shows(map[state]float64{warm: 2, pulling: 1, failed: 1, pending: 1})
	assert.Len(t, r.controller.writes, 3)
	clear(r.server)
	r.seen = r.server
	r.look()
	shows(nil)
	assert.Empty(t, r.controller.writes, "what is gone is forgotten")
	r.deployment.Labels = nil
	r.look()
	assert.Equal(t, 0, testutil.CollectAndCount(placeholders))
}
