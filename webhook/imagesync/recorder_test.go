package imagesync

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
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
	r := &recorder{writer: api, scheme: scheme.Scheme, log: logr.Discard(), instance: "warmpool-0"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "warm", Name: "ph", UID: "1", ResourceVersion: "7"}}
	template := templateReference(&cluster.WorkspaceTemplate{APIVersion: "workspace.jupyter.org/v1alpha1", Namespace: "shared", Name: "cpu", UID: "2"})
	for _, text := range []string{"one", "two"} {
		r.Eventf(d, nil, corev1.EventTypeWarning, reasonBlocked, "Resolve", "%s", text)
		r.Eventf(template, d, corev1.EventTypeWarning, reasonBlocked, "Resolve", "%s", text)
	}
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

// An Event whose note has more than 1024 bytes is refused.
func TestNoteIsCutByBytes(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("a", 1000), strings.Repeat("a", 1001), strings.Repeat("é", 1000), strings.Repeat("本", 400)} {
		got := note(text)
		assert.LessOrEqual(t, len(got), 1024)
		assert.True(t, utf8.ValidString(got))
		assert.True(t, got == text || len(text) > 1000 && strings.HasPrefix(text, strings.TrimSuffix(got, "…")) && strings.HasSuffix(got, "…"))
	}
}
