// Package follow has what controllers share that go by the Evaluator: they look again whenever there is another one.
package follow

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// workers bounds the writes that are under way at once.
const workers = 8

// Signal wakes the one loop that receives from it; who embeds it has the method for webhook.Evaluators.Changed.
type Signal chan struct{}

// New makes a Signal that holds at most one change: who has not looked yet learns of several at once.
func New() Signal { return make(Signal, 1) }

// Changed says that there is another Evaluator; it never blocks.
func (s Signal) Changed() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Each calls look now and after each change, until ctx ends.
func (s Signal) Each(ctx context.Context, look func()) {
	for {
		look()
		select {
		case <-ctx.Done():
			return
		case <-s:
		}
	}
}

// Queue has the manager, while it leads, reconcile the objects that due names, now and after each change. Not by a watch:
// that would end the process where the objects may not be read, and admissions do not need them.
func (s Signal) Queue(mgr ctrl.Manager, name string, due func() []types.NamespacedName, r reconcile.Reconciler) error {
	feed := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go s.Each(ctx, func() {
			for _, key := range due() {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
		})
		return nil
	}
	return ctrl.NewControllerManagedBy(mgr).Named(name).
		WatchesRawSource(source.Func(feed)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, time.Minute),
		}).
		Complete(r)
}
