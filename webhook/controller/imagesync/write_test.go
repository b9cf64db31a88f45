package imagesync

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestARefusalHoldsForTheseImagesOnly(t *testing.T) {
	r := newRig(t)
	r.look()
	r.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "ph", errors.New("registry not allowed"))
	both(r, "r/evil")
	r.look()
	r.pass(backOff - time.Second)
	assert.Len(t, r.heard(), 1, "asked once, one Event")
	r.fails = nil
	r.look()
	assert.Equal(t, []string{"r/a:1"}, r.pulled(), "not asked again so soon")
	both(r, "r/a:2")
	assert.Equal(t, []string{"r/a:2"}, r.pulled(), "other images are another question")
	r.fails = apierrors.NewBadRequest("denied by a webhook")
	both(r, "r/a:3")
	r.pass(patience)
	r.fails = nil
	r.pass(backOff)
	assert.Equal(t, []string{"r/a:3"}, r.pulled(), "it may be fixed meanwhile")
}

func TestErrorsAreTriedAgain(t *testing.T) {
	r := newRig(t)
	r.look()
	r.fails = errors.New("connection refused")
	both(r, "r/a:2")
	r.fails = apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "ph", errors.New("too many writers"))
	r.look()
	r.fails = nil
	r.pass(settle)
	assert.Equal(t, []string{"r/a:2"}, r.pulled())
	assert.Equal(t, 1, r.rollouts())
}

// While no one answers behind warmpool's own webhook, image sync waits and has nothing to complain of.
func TestOwnWebhookDoesNotAnswer(t *testing.T) {
	r := newRig(t)
	r.look()
	r.fails = apierrors.NewInternalError(errors.New(`failed calling webhook "placeholders.warmpool.sh": failed to call webhook: remote error: tls: internal error`))
	both(r, "r/a:2")
	key := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "overprovisioning", Name: "ph"}}
	last := time.Duration(0)
	for range 10 {
		result, err := r.controller.Reconcile(t.Context(), key)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, result.RequeueAfter, max(settle, last), "less and less often")
		last = result.RequeueAfter
	}
	assert.Equal(t, time.Minute, last)
	r.fails = nil
	r.pass(time.Minute)
	assert.Equal(t, []string{"r/a:2"}, r.pulled())

	r.fails = apierrors.NewInternalError(errors.New(`failed calling webhook "others.example.com": no endpoints available`))
	both(r, "r/a:3")
	_, err := r.controller.Reconcile(t.Context(), key)
	require.ErrorIs(t, err, r.fails, "who fixes another webhook looks for errors")
}

// The watch may bring an older state after a write, or what was written much later.
func TestLateWatch(t *testing.T) {
	r := newRig(t)
	r.look()
	both(r, "r/a:2")
	reverted := func(d *appsv1.Deployment) { d.Spec.Template.Spec.InitContainers[1].Image = "r/a:1" }
	r.late = true
	r.change(reverted)
	require.Equal(t, 2, r.rollouts())
	writes := len(r.writes)
	between := r.seen.DeepCopy()
	between.ResourceVersion, between.Labels["by"] = "between", "another"
	r.seen = between
	r.look()
	r.pass(patience - time.Second)
	assert.Len(t, r.writes, writes, "the same revert is answered once")
	r.seen, r.late = r.server, false
	r.look()
	r.pass(time.Hour)
	assert.Equal(t, 2, r.rollouts())
	assert.Equal(t, []string{"r/a:2"}, r.pulled())
}

// A Deployment that is made anew under the same name is another one.
func TestAnotherDeploymentOfTheSameName(t *testing.T) {
	r := newRig(t)
	r.look()
	both(r, "r/a:2")
	r.change(func(d *appsv1.Deployment) {
		d.UID, d.Generation, d.Annotations = "2", 1, nil
		d.Spec.Template.Spec.InitContainers[1].Image = "r/a:1"
	})
	assert.Equal(t, []string{"r/a:2"}, r.pulled())
}
