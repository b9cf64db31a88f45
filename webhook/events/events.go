// Package events makes the Events by which warmpool tells what it does and what somebody has to fix.
package events

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/redact"
)

const (
	// most is how many Events may wait to be made; more are dropped, and logged.
	most = 2000
	// limit is how long the making of one may take, and of those that are left when warmpool ends.
	limit = 5 * time.Second
)

// Recorder makes each Event as it is, in the order in which they were told. That of client-go takes two that differ in
// their notes alone for one, for minutes, and drops the later: somebody who fixes one fault would never read of the next.
type Recorder struct {
	writer client.Writer
	scheme *runtime.Scheme
	log    logr.Logger
	// instance tells the replicas apart.
	instance string
	queue    chan *eventsv1.Event
	limits   *limits
}

var _ manager.LeaderElectionRunnable = (*Recorder)(nil)

// New makes a Recorder, which makes Events once it is added to the manager and started.
func New(mgr ctrl.Manager) *Recorder {
	return newRecorder(mgr.GetClient(), mgr.GetScheme(), mgr.GetLogger().WithName("events"))
}

func newRecorder(writer client.Writer, scheme *runtime.Scheme, log logr.Logger) *Recorder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Recorder{writer: writer, scheme: scheme, log: log, instance: fmt.Sprintf("warmpool-%.100s", host), queue: make(chan *eventsv1.Event, most), limits: newLimits()}
}

// NeedLeaderElection says no: every replica has something to tell.
func (r *Recorder) NeedLeaderElection() bool { return false }

// Start makes Events until ctx ends, and then those that wait; it returns nil.
func (r *Recorder) Start(ctx context.Context) error {
	for {
		select {
		case event := <-r.queue:
			r.create(context.WithoutCancel(ctx), event)
		case <-ctx.Done():
			return r.finish()
		}
	}
}

func (r *Recorder) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		select {
		case event := <-r.queue:
			r.create(ctx, event)
		default:
			return nil
		}
	}
}

func (r *Recorder) create(ctx context.Context, event *eventsv1.Event) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := r.writer.Create(ctx, event)
	if event.GenerateName == "" && apierrors.IsAlreadyExists(err) {
		return // told before, perhaps by another replica
	}
	if err != nil {
		r.log.Error(redact.Error(err), "Event not made", "reason", event.Reason)
	}
}

// Eventf tells of an Event about an object, and perhaps a related one; it never waits. Nothing depends on an Event: one
// that cannot be made is logged. A note too long for an Event is cut.
func (r *Recorder) Eventf(regarding, related runtime.Object, kind, reason, action, format string, args ...any) {
	r.tell("", regarding, related, kind, reason, action, fmt.Sprintf(format, args...))
}

// Once is Eventf for an Event that is made under a name, once for as long as the API server keeps it (an hour, unless it
// is set to another time), whichever replica tells it, and however often.
func (r *Recorder) Once(name string, regarding runtime.Object, kind, reason, action, note string) {
	r.tell(name, regarding, nil, kind, reason, action, note)
}

func (r *Recorder) tell(name string, regarding, related runtime.Object, kind, reason, action, note string) {
	event, err := r.event(regarding, related)
	if err != nil {
		r.log.Error(err, "Event not made", "reason", reason)
		return
	}
	if name != "" {
		event.Name, event.GenerateName = name, ""
	}
	event.Type, event.Reason, event.Action, event.Note = kind, reason, action, phrase.Cut(note, mostOfANote)
	if !r.limits.allow(&event.Regarding) {
		dropped.Inc()
		return
	}
	select {
	case r.queue <- event:
	default:
		dropped.Inc()
		r.log.Info("Event not made: too many wait", "reason", reason)
	}
}

// mostOfANote bounds notes: the API server takes at most 1024 bytes.
const mostOfANote = 1000

func (r *Recorder) event(regarding, related runtime.Object) (*eventsv1.Event, error) {
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		return nil, fmt.Errorf("refer to what the Event is about: %w", err)
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault), GenerateName: about.Name + "-"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "warmpool", ReportingInstance: r.instance,
		Regarding: *about,
	}
	if related != nil {
		if event.Related, err = reference.GetReference(r.scheme, related); err != nil {
			return nil, fmt.Errorf("refer to what the Event is related to: %w", err)
		}
	}
	return event, nil
}
