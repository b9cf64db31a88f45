package imagesync

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventLimit is how long the making of an Event may take.
const eventLimit = 5 * time.Second

// recorder makes each Event at once and as it is. That of client-go takes two that differ in their notes alone for one, for
// minutes, and drops the later: somebody who mends one fault would never read of the next.
type recorder struct {
	writer client.Writer
	scheme *runtime.Scheme
	log    logr.Logger
	// instance tells the replicas apart.
	instance string
}

func newRecorder(mgr ctrl.Manager, log logr.Logger) *recorder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &recorder{writer: mgr.GetClient(), scheme: mgr.GetScheme(), log: log, instance: fmt.Sprintf("warmpool-%.100s", host)}
}

// Eventf makes an Event about an object. One that cannot be made is logged: nothing depends on it.
func (r *recorder) Eventf(regarding, related runtime.Object, kind, reason, action, format string, args ...any) {
	event, err := r.event(regarding, related)
	if err == nil {
		event.Type, event.Reason, event.Action, event.Note = kind, reason, action, fmt.Sprintf(format, args...)
		ctx, cancel := context.WithTimeout(context.Background(), eventLimit)
		defer cancel()
		err = r.writer.Create(ctx, event)
	}
	if err != nil {
		r.log.Error(err, "Event not made", "reason", reason)
	}
}

func (r *recorder) event(regarding, related runtime.Object) (*eventsv1.Event, error) {
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		return nil, fmt.Errorf("refer to what the Event is about: %w", err)
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, GenerateName: about.Name + "-"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "warmpool", ReportingInstance: r.instance,
		Regarding: *about,
	}
	if related != nil {
		var with *corev1.ObjectReference
		if with, err = reference.GetReference(r.scheme, related); err != nil {
			return nil, fmt.Errorf("refer to what the Event is related to: %w", err)
		}
		event.Related = with
	}
	return event, nil
}
