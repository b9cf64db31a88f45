package events

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// made keeps the Events that are made.
type made struct {
	client.Writer
	events []*eventsv1.Event
}

func (m *made) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if event, ok := object.(*eventsv1.Event); ok {
		m.events = append(m.events, event)
	}
	return nil
}

// Two notes about one object are two Events: whoever mends the first fault reads of the next.
func TestEventsThatDifferInTheirNotesAreAllMade(t *testing.T) {
	api := &made{}
	r := newRecorder(api, scheme.Scheme, logr.Discard())
	r.instance = "warmpool-0"
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "warm", Name: "ph", UID: "1", ResourceVersion: "7"}}
	template := &corev1.ObjectReference{APIVersion: "workspace.jupyter.org/v1alpha1", Kind: "WorkspaceTemplate", Namespace: "shared", Name: "cpu", UID: "2"}
	for _, text := range []string{"one", "two"} {
		r.Eventf(d, nil, corev1.EventTypeWarning, "ImageSyncBlocked", "Resolve", "%s", text)
		r.Eventf(template, d, corev1.EventTypeWarning, "ImageSyncBlocked", "Resolve", "%s", text)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, r.Start(ended), "what waits is made before the end")
	require.Len(t, api.events, 4)
	first, second := api.events[0], api.events[1]
	assert.Equal(t, corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "warm", Name: "ph", UID: "1", ResourceVersion: "7"}, first.Regarding)
	assert.Nil(t, first.Related)
	assert.Equal(t, "warm", first.Namespace)
	assert.Equal(t, "ph-", first.GenerateName)
	assert.Equal(t, "warmpool", first.ReportingController)
	assert.Equal(t, "warmpool-0", first.ReportingInstance)
	assert.False(t, first.EventTime.IsZero())
	assert.Equal(t, *template, second.Regarding)
	assert.Equal(t, first.Regarding, *second.Related)
	assert.Equal(t, "shared", second.Namespace)
	assert.Equal(t, []string{"one", "one", "two", "two"}, []string{first.Note, second.Note, api.events[2].Note, api.events[3].Note})
}

// What cannot be made in time is dropped: nobody waits for an Event.
func TestTooManyEvents(t *testing.T) {
	api := &made{}
	r := newRecorder(api, scheme.Scheme, logr.Discard())
	for range most + 10 {
		r.Eventf(&corev1.ObjectReference{Namespace: "warm", Name: "ph"}, nil, corev1.EventTypeNormal, "ImageSynced", "Patch", "synced")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, r.Start(ended))
	assert.Len(t, api.events, most)
}
