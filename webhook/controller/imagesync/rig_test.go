package imagesync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

const twoTemplates = `
apiVersion: config.warmpool.sh/v1alpha1
kind: WarmPoolConfiguration
pools:
- {name: cpu, nodePools: [cpu-a], templates: [{namespace: shared, name: a}, {namespace: shared, name: b}]}
`

// rig is a Controller with one placeholder, at a time that passes only when a test says so.
type rig struct {
	t          testing.TB
	controller *Controller
	now        time.Time
	config     *config.WarmPoolConfiguration
	templates  map[string]*cluster.WorkspaceTemplate
	pods       map[string]*corev1.Pod
	// server is the placeholder as the API server has it, seen as the watch has brought it: late keeps that from coming.
	server, seen *appsv1.Deployment
	late         bool
	// fails is what the API server answers to writes.
	fails error
	// wake is when the Controller wants to look again; zero: never.
	wake   time.Time
	writes []written
	noted  []string
}

// written is one write that the API server took.
type written struct {
	at time.Time
	// rollout reports that the pods change, answer that it undoes what another writer did.
	rollout, answer bool
}

// newRig has a placeholder that pulls r/a:1, as its two templates say.
func newRig(t testing.TB) *rig {
	t.Helper()
	cfg, err := config.Load([]byte(twoTemplates), policy.IDs())
	require.NoError(t, err)
	r := &rig{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), config: cfg, templates: map[string]*cluster.WorkspaceTemplate{}, pods: map[string]*corev1.Pod{}}
	for _, name := range []string{"a", "b"} {
		r.templates["shared/"+name] = &cluster.WorkspaceTemplate{Namespace: "shared", Name: name, DefaultImage: "r/a:1"}
	}
	r.server = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "overprovisioning", Name: "ph", UID: "1", Generation: 1, ResourceVersion: "1", Labels: map[string]string{"warmpool.sh/pool": "cpu"},
	}}
	r.server.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "mine", Image: "r/mine"}, {Name: prepull.Name, Image: "r/a:1"}}
	r.seen = r.server
	r.controller = r.leader()
	return r
}

// leader is a Controller that has just begun.
func (r *rig) leader() *Controller {
	return &Controller{
		log: logr.Discard(), source: r.evaluator, writer: api{rig: r}, reader: api{rig: r}, events: r,
		now: func() time.Time { return r.now }, memories: map[types.NamespacedName]*memory{},
	}
}

func (r *rig) evaluator() *policy.Evaluator {
	e, err := policy.New(r.config, &cluster.Snapshot{
		Templates:       cluster.Known(r.templates),
		Deployments:     cluster.Known(map[string]*appsv1.Deployment{"overprovisioning/ph": r.seen}),
		PlaceholderPods: cluster.Known(r.pods),
	}, r.now)
	require.NoError(r.t, err)
	return e
}

// look does what follows a change of the Snapshot, and of what was written the watch reports at once.
func (r *rig) look() {
	for range 2 {
		e := r.evaluator()
		r.wake = time.Time{}
		for _, key := range r.controller.scan(e) {
			result, err := r.controller.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: key})
			if !errors.Is(err, r.fails) {
				require.NoError(r.t, err)
			}
			if result.RequeueAfter > 0 {
				r.wake = r.now.Add(result.RequeueAfter)
			}
		}
		if r.seen == r.server || r.late {
			return
		}
		r.seen = r.server
	}
	r.look()
}

// pass lets time pass, and the Controller look when it wanted to.
func (r *rig) pass(d time.Duration) {
	end := r.now.Add(d)
	for !r.wake.IsZero() && !r.wake.After(end) {
		require.True(r.t, r.wake.After(r.now), "looking again at once would never end")
		r.now = r.wake
		r.look()
	}
	r.now = end
}

// edit sets the image of a template.
func (r *rig) edit(template, image string) {
	r.templates["shared/"+template] = &cluster.WorkspaceTemplate{Namespace: "shared", Name: template, DefaultImage: image}
	r.look()
}

// change makes another writer change the placeholder.
func (r *rig) change(f func(d *appsv1.Deployment)) {
	next := r.server.DeepCopy()
	f(next)
	r.put(next)
	r.seen = r.server
	r.look()
}

// pull makes another writer set the image of the first pre-pull container, and no other.
func (r *rig) pull(image string) {
	r.change(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "mine", Image: "r/mine"}, {Name: prepull.Name, Image: image}}
	})
}

func (r *rig) put(next *appsv1.Deployment) {
	if fmt.Sprint(next.Spec) != fmt.Sprint(r.server.Spec) {
		next.Generation++
	}
	next.ResourceVersion += "0"
	r.server = next
}

func (r *rig) pulled() []string { return prepull.Pulled(r.server.Spec.Template.Spec.InitContainers) }

func (r *rig) rollouts() int {
	n := 0
	for _, w := range r.writes {
		if w.rollout {
			n++
		}
	}
	return n
}

// Eventf notes the Events of the placeholder.
func (r *rig) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	if _, ok := regarding.(*appsv1.Deployment); ok {
		r.noted = append(r.noted, kind+" "+reason+": "+fmt.Sprintf(note, args...))
	}
}

// heard gives what was noted since it was asked last.
func (r *rig) heard() []string {
	noted := r.noted
	r.noted = nil
	return noted
}

// api is the API server.
type api struct {
	client.Writer
	client.Reader
	rig *rig
}

func (a api) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	live, ok := object.(*appsv1.Deployment)
	require.True(a.rig.t, ok)
	a.rig.server.DeepCopyInto(live)
	live.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: FieldManager, FieldsV1: fields(prepull.Name)}, {Manager: "gitops", FieldsV1: fields(prepull.Name)}, {Manager: "labeller", FieldsV1: fields("mine")},
	}
	return nil
}

func fields(container string) *metav1.FieldsV1 {
	return metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"` + container + `\"}":{"f:image":{}}}}}}}`)
}

func (a api) Apply(_ context.Context, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	ac, ok := object.(*appsapply.DeploymentApplyConfiguration)
	require.True(a.rig.t, ok)
	next := a.rig.server.DeepCopy()
	next.Annotations = map[string]string{}
	maps.Copy(next.Annotations, a.rig.server.Annotations)
	maps.Copy(next.Annotations, ac.Annotations)
	init := next.Spec.Template.Spec.InitContainers
	for _, c := range ac.Spec.Template.Spec.InitContainers {
		for i := range init {
			if init[i].Name == *c.Name {
				init[i].Image = *c.Image
			}
		}
	}
	err := a.take(next, *ac.UID)
	ac.WithGeneration(a.rig.server.Generation)
	return err
}

func (a api) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(object)
	require.NoError(a.rig.t, err)
	original, err := json.Marshal(a.rig.server)
	require.NoError(a.rig.t, err)
	merged, err := strategicpatch.StrategicMergePatch(original, data, appsv1.Deployment{})
	require.NoError(a.rig.t, err)
	next := &appsv1.Deployment{}
	require.NoError(a.rig.t, json.Unmarshal(merged, next))
	err = a.take(next, next.UID)
	object.SetGeneration(a.rig.server.Generation)
	return err
}

func (a api) take(next *appsv1.Deployment, uid types.UID) error {
	r := a.rig
	if r.fails != nil {
		return r.fails
	}
	if uid != r.server.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, next.Name, errors.New("another uid"))
	}
	g := goalOf(r.evaluator(), r.server)
	before := r.server
	r.put(next)
	r.writes = append(r.writes, written{at: r.now, rollout: r.server.Generation > before.Generation, answer: g.recorded() && !g.reached()})
	return nil
}
