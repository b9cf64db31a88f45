package storm

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"warmpool.sh/test/harness/controlplane"
)

// Watch follows the Deployments in Namespace.
type Watch struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	byName  map[string]*appsv1.Deployment
}

// NewWatch follows until ctx ends.
func NewWatch(ctx context.Context, cp *controlplane.ControlPlane) (*Watch, error) {
	kube, err := kubernetes.NewForConfig(cp.Config)
	if err != nil {
		return nil, err
	}
	w := &Watch{changed: make(chan struct{}), byName: map[string]*appsv1.Deployment{}}
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(Namespace))
	informer := factory.Apps().V1().Deployments().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: w.put, UpdateFunc: func(_, now any) { w.put(now) }}); err != nil {
		return nil, fmt.Errorf("watch Deployments: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watch Deployments: %w", ctx.Err())
	}
	return w, nil
}

func (w *Watch) put(object any) {
	d, ok := object.(*appsv1.Deployment)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byName[d.Name] = d
	close(w.changed)
	w.changed = make(chan struct{})
}

// Until returns when ok says so of a Deployment by its name, nil for one that is not there. ok is asked after each change.
func (w *Watch) Until(ctx context.Context, ok func(get func(name string) *appsv1.Deployment) bool) error {
	for {
		w.mu.Lock()
		done, changed := ok(func(name string) *appsv1.Deployment { return w.byName[name] }), w.changed
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Get gives a Deployment as it is now, or nil.
func (w *Watch) Get(name string) *appsv1.Deployment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byName[name]
}
