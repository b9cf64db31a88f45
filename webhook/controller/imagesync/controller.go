package imagesync

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"warmpool.sh/webhook/controller/follow"
	"warmpool.sh/webhook/events"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/redact"
)

// recorder records Events; it is that of webhook/events.
type recorder interface {
	Eventf(regarding, related runtime.Object, kind, reason, action, format string, args ...any)
}

// Controller patches placeholder Deployments whose images are not those of their pool's templates. It works on the
// leader only.
type Controller struct {
	follow.Signal
	log    logr.Logger
	source func() *policy.Evaluator
	writer client.Writer
	// reader asks the API server itself, for what the cache does not keep.
	reader client.Reader
	events recorder
	now    func() time.Time

	mu       sync.Mutex
	memories map[types.NamespacedName]*memory
	failing  failures
	// inSync is what the gauge shows.
	inSync map[string]bool
}

// New makes a Controller that goes by the Evaluator that source gives; nil while there is none.
func New(mgr ctrl.Manager, source func() *policy.Evaluator, events *events.Recorder) *Controller {
	return &Controller{
		log: mgr.GetLogger().WithName("image-sync"), source: source,
		writer: mgr.GetClient(), reader: mgr.GetAPIReader(), events: events,
		now: time.Now, Signal: follow.New(), memories: map[types.NamespacedName]*memory{},
	}
}

// SetupWithManager has the manager run the Controller while it leads.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if err := c.Queue(mgr, "image-sync", c.dueNow(), c); err != nil {
		return fmt.Errorf("set up image sync: %w", err)
	}
	return nil
}

// dueNow gives the placeholders whenever something that matters for their images has changed.
func (c *Controller) dueNow() func() []types.NamespacedName {
	var last *policy.Evaluator
	return func() []types.NamespacedName {
		e := c.source()
		if e == nil || last != nil && !matters(last, e) {
			return nil
		}
		if last != nil && last.Config() != e.Config() {
			forgetPools(last.Config(), e.Config())
		}
		last = e
		return c.scan(e)
	}
}

// matters reports whether the images of placeholders may be others by another Evaluator: nodes come and go without.
func matters(before, now *policy.Evaluator) bool {
	a, b := before.Facts(), now.Facts()
	return before.Config() != now.Config() ||
		b.Deployments.Differs(a.Deployments) || b.Templates.Differs(a.Templates) ||
		b.PlaceholderPods.Differs(a.PlaceholderPods) || b.NodePools.Differs(a.NodePools)
}

// scan gives the placeholders, and those that are none any more, in the order of their names; it sets the gauge of the
// pools and notes which images cannot be pulled.
func (c *Controller) scan(e *policy.Evaluator) []types.NamespacedName {
	var keys []types.NamespacedName
	inSync := map[string]bool{}
	known := map[types.NamespacedName]bool{}
	for _, d := range e.Facts().Deployments.All() {
		if !e.IsPlaceholder(d) {
			continue
		}
		key := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
		keys, known[key] = append(keys, key), true
		// The gauge is of those that are warmpool's to write: whoever makes a placeholder elsewhere must not raise its alert.
		if g := goalOf(e, d); g.known && d.Namespace == e.Config().Placeholders.Namespace {
			before, seen := inSync[g.pool]
			inSync[g.pool] = (before || !seen) && g.reached()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	showInSync(c.inSync, inSync)
	c.inSync = inSync
	c.failing = failuresOf(e.Facts().PlaceholderPods)
	for key := range c.memories {
		if !known[key] {
			delete(c.memories, key)
		}
	}
	return keys
}

// Reconcile brings one placeholder nearer to the images that it is to pull.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	e := c.source()
	if e == nil {
		return reconcile.Result{}, nil
	}
	d := e.Facts().Deployments.Get(request.String())
	if d == nil || !e.IsPlaceholder(d) {
		return reconcile.Result{}, nil
	}
	m, failing := c.remember(request.NamespacedName, d)
	if after := m.behind(d, c.now()); after > 0 {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	s := decide(goalOf(e, d), failing, m, c.now())
	c.say(ctx, e, d, m, s)
	if s.write == writeNothing {
		return reconcile.Result{RequeueAfter: s.after}, nil
	}
	after, err := c.carryOut(ctx, e, d, m, s)
	return reconcile.Result{RequeueAfter: after}, err
}

func (c *Controller) remember(key types.NamespacedName, d *appsv1.Deployment) (*memory, failures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[key]
	if m == nil || m.uid != d.UID {
		m = newMemory(d)
		c.memories[key] = m
	}
	return m, c.failing
}

// carryOut writes and announces it. after is when to look again where no change has to come.
func (c *Controller) carryOut(ctx context.Context, e *policy.Evaluator, d *appsv1.Deployment, m *memory, s step) (after time.Duration, err error) {
	log := c.log.WithValues("pool", s.goal.pool, "namespace", d.Namespace, "name", d.Name)
	generation, err := c.write(ctx, d, s)
	switch {
	case refused(err):
		n := blocked("Write", s.goal.templates(), fmt.Sprintf("the API server refuses the images of Deployment %s/%s: %v", d.Namespace, d.Name, err))
		n.result = resultRefused
		m.refusal = refusal{images: s.goal.images, notice: n, until: c.now().Add(backOff)}
		s.hold = &n
		log.Info("image sync was refused")
		c.say(ctx, e, d, m, s)
		return backOff, nil
	case stale(err):
		return settle, nil
	case unanswered(err):
		m.unanswered = min(max(settle, 2*m.unanswered), time.Minute)
		log.Info("image sync waits: warmpool's own webhook does not answer, as before any replica is ready", "again", m.unanswered, "reason", redact.Error(err).Error())
		return m.unanswered, nil
	case err != nil:
		syncs.WithLabelValues(s.goal.pool, resultError).Inc()
		return 0, fmt.Errorf("patch Deployment %s/%s: %w", d.Namespace, d.Name, redact.Error(err)) // controller-runtime logs it
	}
	m.unanswered = 0
	m.from, m.generation, m.written = d.ResourceVersion, generation, c.now()
	if s.write == writeRecord {
		return 0, nil
	}
	m.wrote(c.now(), s.reverted)
	syncs.WithLabelValues(s.goal.pool, resultSynced).Inc()
	durations.Observe(c.now().Sub(s.since).Seconds())
	edited := s.goal.edited()
	log.Info("image synced", "templates", templateNames(edited))
	c.announce(e, d, notice{kind: corev1.EventTypeNormal, reason: reasonSynced, action: "Patch", note: s.goal.synced(), templates: edited})
	return 0, nil
}

var _ reconcile.Reconciler = (*Controller)(nil)
