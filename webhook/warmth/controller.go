package warmth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/redact"
	"warmpool.sh/webhook/wake"
)

// workers bounds the writes that are under way at once.
const workers = 8

// Controller labels placeholder pods by how far their pre-pull is, and sets the cost of deleting them. It works on the leader only, and on the pods of the
// placeholders' namespace alone, for the Snapshot has no others.
type Controller struct {
	wake.Signal
	log    logr.Logger
	source func() *policy.Evaluator
	writer client.Writer
	now    func() time.Time
	// occupants tells which nodes have Workspaces.
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
		now: time.Now, Signal: wake.New(), writes: map[types.NamespacedName]written{},
	}
}

// SetupWithManager has the manager run the Controller while it leads.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	// Not a watch of its own: that would end the process where pods may not be read, and admissions do not need them.
	err := ctrl.NewControllerManagedBy(mgr).Named("warmth").
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go c.feed(ctx, queue)
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, time.Minute),
		}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the labels of placeholders: %w", err)
	}
	return nil
}

// feed queues the pods whose labels or costs are not as they should be, whenever something that matters for them has changed.
func (c *Controller) feed(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var last *policy.Evaluator
	var lastVersion uint64
	for {
		version := c.occupants.Version()
		if e := c.source(); e != nil && (last == nil || version != lastVersion || matters(last, e)) {
			for _, key := range c.scan(e) {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
			last, lastVersion = e, version
		}
		select {
		case <-ctx.Done():
			return
		case <-c.Signal:
		}
	}
}

// matters tells whether the labels may be others by another Evaluator: nodes and templates come and go without.
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
