package warmlabels

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"warmpool.sh/webhook/controller/follow"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/redact"
)

// Controller labels placeholder pods by how far their pre-pull is, and sets the cost of deleting them. It works on the leader only, and on the pods of the
// placeholders' namespace alone, for the Snapshot has no others.
type Controller struct {
	follow.Signal
	log    logr.Logger
	source func() *policy.Evaluator
	writer client.Writer
	now    func() time.Time
	// occupants reports which nodes have Workspaces.
	occupants Occupants

	mu     sync.Mutex
	writes map[types.NamespacedName]written
	// shown is what the gauge shows.
	shown counts
}

var _ reconcile.Reconciler = (*Controller)(nil)

// New makes a Controller that goes by the Evaluator that source gives; nil while there is none.
func New(mgr ctrl.Manager, source func() *policy.Evaluator, occupants Occupants) *Controller {
	return &Controller{
		log: mgr.GetLogger().WithName("warmth"), source: source, writer: mgr.GetClient(), occupants: occupants,
		now: time.Now, Signal: follow.New(), writes: map[types.NamespacedName]written{},
	}
}

// SetupWithManager has the manager run the Controller while it leads.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if err := c.Queue(mgr, "warmth", c.dueNow(), c); err != nil {
		return fmt.Errorf("set up the labels of placeholders: %w", err)
	}
	return nil
}

// dueNow gives the pods whose labels or costs are not as they should be, whenever something that matters for them has changed.
func (c *Controller) dueNow() func() []types.NamespacedName {
	var last *policy.Evaluator
	var lastVersion uint64
	return func() []types.NamespacedName {
		e, version := c.source(), c.occupants.Version()
		if e == nil || last != nil && version == lastVersion && !matters(last, e) {
			return nil
		}
		last, lastVersion = e, version
		return c.scan(e)
	}
}

// matters reports whether the labels may be others by another Evaluator: nodes and templates come and go without.
func matters(before, now *policy.Evaluator) bool {
	a, b := before.Facts(), now.Facts()
	return before.Config() != now.Config() || b.PlaceholderPods.Differs(a.PlaceholderPods) || b.Deployments.Differs(a.Deployments)
}

// scan gives the pods to look at, in the order of their names, and sets the gauge.
func (c *Controller) scan(e *policy.Evaluator) []types.NamespacedName {
	var keys []types.NamespacedName
	pools := poolsOf(e)
	found := counts{}
	for _, pool := range pools {
		found[pool] = map[state]int{}
	}
	for _, pod := range e.Facts().PlaceholderPods.All() {
		pool, ok := pools[deploymentOf(pod)]
		if !ok || policy.Ended(pod) {
			continue
		}
		at, what := c.changeOf(pod)
		found[pool][at]++
		if !what.isEmpty() {
			keys = append(keys, client.ObjectKeyFromObject(pod))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found.show(c.shown)
	c.shown = found
	for key := range c.writes {
		if e.Facts().PlaceholderPods.Get(key.String()) == nil {
			delete(c.writes, key)
		}
	}
	return keys
}

// Reconcile gives one pod the labels and the cost that it is to have.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	e := c.source()
	if e == nil {
		return reconcile.Result{}, nil
	}
	pod := e.Facts().PlaceholderPods.Get(request.String())
	if pod == nil || policy.Ended(pod) || !isLabelled(e, pod) {
		return reconcile.Result{}, nil
	}
	at, what := c.changeOf(pod)
	if what.isEmpty() {
		return reconcile.Result{}, nil
	}
	if after := c.lastWrite(request.NamespacedName).wait(pod, what, c.now()); after > 0 {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	w, err := c.write(ctx, pod, what)
	switch {
	case gone(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("patch Pod %s: %w", request, redact.Error(err)) // controller-runtime logs it
	}
	c.mu.Lock()
	c.writes[request.NamespacedName] = w
	c.mu.Unlock()
	c.log.V(1).Info("pod labelled", "namespace", pod.Namespace, "name", pod.Name, "state", at)
	return reconcile.Result{}, nil
}

func (c *Controller) lastWrite(key types.NamespacedName) written {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes[key]
}
