package starts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/controller/follow"
	"warmpool.sh/webhook/policy"
)

// settle is how long after a Workspace's start its placeholder is looked for: the two watches know nothing of each other.
const settle = 2 * time.Second

// reasonCold is that of the Events on Workspace pods that have started cold.
const reasonCold = "ColdStart"

// Teller makes Events; an events.Recorder is one.
type Teller interface {
	Once(name string, regarding runtime.Object, kind, reason, action, note string)
}

// Listener is told of the Workspace pods that are watched: each as it is now, each that is gone, and how those of a pool have
// started: found tells that the pod came beside a placeholder that had its image, or in the place of one. It must not block.
type Listener interface {
	Seen(pod *corev1.Pod)
	Gone(pod *corev1.Pod)
	Started(pod *corev1.Pod, pool string, found bool)
}

// Controller tells how Workspaces start. It works on the leader only, and tells of no start that was before its time.
type Controller struct {
	follow.Signal
	log     logr.Logger
	source  func() *policy.Evaluator
	events  Teller
	config  *rest.Config
	scheme  *runtime.Scheme
	history *history
	nodes   *Occupancy
	listens []Listener
	watch   func(context.Context, labels.Selector) error // watchPods
	began   time.Time                                    // of Start, in whole seconds as the API server's times are

	mu sync.Mutex
	// told are the pods that are not to be told of again.
	told map[types.UID]bool
}

var _ manager.LeaderElectionRunnable = (*Controller)(nil)

// New makes a Controller that goes by the Evaluator that source gives; nil while there is none.
func New(mgr ctrl.Manager, source func() *policy.Evaluator, events Teller) *Controller {
	c := &Controller{
		log: mgr.GetLogger().WithName("telemetry"), source: source, events: events, config: mgr.GetConfig(), scheme: mgr.GetScheme(),
		Signal: follow.New(), history: newHistory(), nodes: newOccupancy(), told: map[types.UID]bool{},
	}
	c.watch = c.watchPods
	return c
}

// Occupancy tells which nodes have Workspaces while the Controller runs.
func (c *Controller) Occupancy() *Occupancy { return c.nodes }

// Listen has a Listener told of all pods; to be called before the Controller starts.
func (c *Controller) Listen(l Listener) { c.listens = append(c.listens, l) }

// NeedLeaderElection says yes: each start is counted once.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start follows placeholders and Workspaces until ctx ends; it returns nil then. Where pods may not be watched the log
// says so, and nothing is told.
func (c *Controller) Start(ctx context.Context) error {
	c.began = time.Now().Truncate(time.Second)
	var last labels.Selector
	end := context.CancelFunc(func() {})
	defer func() { end() }()
	c.Each(ctx, func() {
		e := c.source()
		if e == nil {
			return
		}
		c.history.observe(e.Facts().PlaceholderPods, time.Now())
		selector, err := metav1.LabelSelectorAsSelector(e.Config().Workspaces.Selector)
		if err == nil && (last == nil || selector.String() != last.String()) { // what is not valid, validation has refused
			end()
			last, end = selector, c.follow(ctx, selector)
		}
	})
	return nil
}

// follow watches the Workspace pods that the selector takes, until it is ended.
func (c *Controller) follow(ctx context.Context, selector labels.Selector) (end context.CancelFunc) {
	ctx, end = context.WithCancel(ctx)
	go func() {
		if err := c.watch(ctx, selector); err != nil && ctx.Err() == nil {
			c.log.Error(err, "starts of Workspaces are not reported")
		}
	}()
	return end
}

// watchPods uses a cache of its own: the manager's has only the pods of the placeholders' namespace.
func (c *Controller) watchPods(ctx context.Context, selector labels.Selector) error {
	pods, err := cache.New(c.config, live.WorkspacePods(c.scheme, selector))
	if err != nil {
		return fmt.Errorf("make a cache of Workspace pods: %w", err)
	}
	informer, err := pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch Workspace pods: %w", err)
	}
	queue := workqueue.NewTypedDelayingQueue[types.NamespacedName]()
	c.nodes.reset()
	handled, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, _ bool) { c.seen(obj, queue) },
		UpdateFunc: func(_, obj any) { c.seen(obj, queue) },
		DeleteFunc: c.gone,
	})
	if err != nil {
		return fmt.Errorf("watch Workspace pods: %w", err)
	}
	go c.work(ctx, pods, queue)
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), handled.HasSynced) {
			c.nodes.complete()
		}
	}()
	defer queue.ShutDown()
	return pods.Start(ctx)
}

// seen queues a pod that has begun to run; one that ran before Start is not told of.
func (c *Controller) seen(obj any, queue workqueue.TypedDelayingInterface[types.NamespacedName]) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	c.nodes.see(pod)
	for _, l := range c.listens {
		l.Seen(pod)
	}
	at, ok := begun(pod)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[pod.UID] {
		return
	}
	c.told[pod.UID] = true
	if !at.running.Before(c.began) {
		queue.AddAfter(client.ObjectKeyFromObject(pod), settle)
	}
}

func (c *Controller) gone(obj any) {
	if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		c.nodes.drop(pod.UID)
		for _, l := range c.listens {
			l.Gone(pod)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.told, pod.UID)
	}
}

func (c *Controller) work(ctx context.Context, pods client.Reader, queue workqueue.TypedDelayingInterface[types.NamespacedName]) {
	for {
		key, ended := queue.Get()
		if ended {
			return
		}
		var pod corev1.Pod
		if err := pods.Get(ctx, key, &pod); err == nil { // else it has ended already
			c.tell(&pod)
		}
		queue.Done(key)
	}
}

// tell counts the start of a pod.
func (c *Controller) tell(pod *corev1.Pod) {
	e := c.source()
	at, ok := begun(pod)
	if e == nil || !ok {
		return
	}
	pool := place{pool: e.Pools().ForPodIn(pod.Namespace, pod.Labels, &pod.Spec).Pool, nodes: e.Facts().Nodes}
	s := classify(pod, pool, at, c.history)
	if s.path == pathCold && pool.pool != nil && pool.pool.Fit(&pod.Spec).Conflict {
		s.cause, s.note = causeOwnNodes, "cold: its own node selection leaves out all nodes of pool "+pool.name()
		pool = place{} // whose starts are not to look bad for it
	}
	seconds.WithLabelValues(pool.name(), s.path).Observe(s.took.Seconds())
	starts.WithLabelValues(pool.name(), s.path, s.cause).Inc()
	c.log.V(1).Info("Workspace started", "namespace", pod.Namespace, "name", pod.Name, "path", s.path, "cause", s.cause, "seconds", s.took.Seconds())
	for _, l := range c.listens {
		if pool.pool != nil {
			l.Started(pod, pool.name(), s.path != pathCold)
		}
	}
	if s.path == pathCold {
		c.events.Once("warmpool-start-"+string(pod.UID), pod, corev1.EventTypeNormal, reasonCold, "StartWorkspace", s.note)
	}
}
