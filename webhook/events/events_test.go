package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/phrase"
)

// made keeps the Events that are made.
type made struct {
	client.Writer
	events []*eventsv1.Event
}

func (m *made) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if event, ok := object.(*eventsv1.Event); ok {
		if slices.ContainsFunc(m.events, func(e *eventsv1.Event) bool { return e.Name != "" && e.Name == event.Name }) {
			return apierrors.NewAlreadyExists(eventsv1.Resource("events"), event.Name)
		}
		m.events = append(m.events, event)
	}
	return nil
}

// Two notes about one object are two Events: whoever fixes the first fault reads of the next.
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

// A replica that does not know what another one has told makes the same Event, and no second one comes of it.
func TestOnce(t *testing.T) {
	api := &made{}
	var log strings.Builder
	r := newRecorder(api, scheme.Scheme, funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
	node := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "one", UID: "one"}
	for range 2 {
		r.Once("audit-1", node, corev1.EventTypeWarning, "NodeTaints", "Audit", "note")
	}
	r.Once("audit-2", node, corev1.EventTypeWarning, "NodeTaints", "Audit", "note")
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, r.Start(ended))
	require.Len(t, api.events, 2)
	assert.Empty(t, api.events[0].GenerateName)
	assert.Equal(t, "default", api.events[0].Namespace, "where those of what has no namespace have to be")
	assert.Empty(t, log.String())
}

// An Event whose note has more than 1024 bytes is refused.
func TestNoteIsCutByBytes(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("a", 1000), strings.Repeat("a", 1001), strings.Repeat("é", 1000), strings.Repeat("本", 400)} {
		got := phrase.Cut(text, mostOfANote)
		assert.LessOrEqual(t, len(got), 1024)
		assert.True(t, utf8.ValidString(got))
		assert.True(t, got == text || len(text) > 1000 && strings.HasPrefix(text, strings.TrimSuffix(got, "…")) && strings.HasSuffix(got, "…"))
	}
}

// What cannot be made in time is dropped: nobody waits for an Event.
func TestTooManyEvents(t *testing.T) {
	api := &made{}
	r := newRecorder(api, scheme.Scheme, logr.Discard())
	for i := range most + 10 {
		r.Eventf(&corev1.ObjectReference{Namespace: "warm", Name: fmt.Sprint("ph-", i)}, nil, corev1.EventTypeNormal, "ImageSynced", "Patch", "synced")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, r.Start(ended))
	assert.Len(t, api.events, most)
}

// No one can have Events made about one object without end; others are not held up by it.
func TestEventsAboutOneObjectAreLimited(t *testing.T) {
	api := &made{}
	r := newRecorder(api, scheme.Scheme, logr.Discard())
	for range 600 {
		r.Eventf(&corev1.ObjectReference{Namespace: "warm", Name: "ph"}, nil, corev1.EventTypeWarning, "NotReady", "Probe", "again")
	}
	r.Eventf(&corev1.ObjectReference{Namespace: "warm", Name: "other"}, nil, corev1.EventTypeNormal, "ImageSynced", "Patch", "synced")
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, r.Start(ended))
	assert.Len(t, api.events, objectBurst+1)
}
