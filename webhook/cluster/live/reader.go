package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"warmpool.sh/webhook/cluster"
)

const notSynced = "not synced yet"

// maxPause bounds how old a Snapshot may be, however long it takes to make one.
const maxPause = 500 * time.Millisecond

// Reader keeps a Snapshot of the cluster up to date. Add it to the manager, whose cache must be made with CacheOptions.
type Reader struct {
	log       logr.Logger
	cache     cache.Cache
	discovery discovery.DiscoveryInterface
	builtin   []*kind
	custom    []*custom
	changed   chan struct{} // holds at most one signal

	rebuildInterval, discoverInterval time.Duration

	snapshot atomic.Pointer[cluster.Snapshot]
	synced   atomic.Bool

	mu        sync.Mutex
	listeners []func(*cluster.Snapshot)
}

var (
	_ cluster.Reader                 = (*Reader)(nil)
	_ manager.LeaderElectionRunnable = (*Reader)(nil)
)

// New makes a Reader over the manager's cache. It reads nothing before Start. placeholders is CacheOptions'.
func New(mgr manager.Manager, placeholders string) (*Reader, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	r := newReader(mgr.GetLogger().WithName("cluster"))
	r.follow(r.newLastSeen())
	r.followNamespace(placeholders)
	r.cache, r.discovery = mgr.GetCache(), client
	return r, nil
}

func newReader(log logr.Logger) *Reader {
	r := &Reader{
		log: log, changed: make(chan struct{}, 1),
		rebuildInterval: 25 * time.Millisecond, discoverInterval: 10 * time.Second,
	}
	r.snapshot.Store(&cluster.Snapshot{})
	for _, k := range cluster.Watched {
		r.follow(r.newKind(k))
	}
	return r
}

// follow adds a kind that is read from Start on.
func (r *Reader) follow(k *kind) {
	k.reset(notSynced, false)
	if k.Describe().IsCustom() {
		r.custom = append(r.custom, &custom{kind: k})
	} else {
		r.builtin = append(r.builtin, k)
	}
	r.rebuild()
}

// followNamespace adds what is read in the placeholders' namespace alone, which the cache is limited to. No denial rests on
// it: where it cannot be read, warmpool is ready all the same.
func (r *Reader) followNamespace(placeholders string) {
	facts := *r.snapshot.Load()
	facts.QuotaNamespace = placeholders
	r.snapshot.Store(&facts)
	for _, of := range cluster.WatchedInNamespace {
		k := r.newKind(of)
		k.awaited = false
		r.follow(k)
	}
}

func (r *Reader) kinds() []*kind {
	all := slices.Clone(r.builtin)
	for _, c := range r.custom {
		all = append(all, c.kind)
	}
	return all
}

// Snapshot returns the present Snapshot; it costs one atomic load. Kinds that are not listed yet are unknown.
func (r *Reader) Snapshot() *cluster.Snapshot { return r.snapshot.Load() }

// Synced tells whether every kind that the cluster serves has been listed once and is in the Snapshot. It stays true.
func (r *Reader) Synced() bool { return r.synced.Load() }

// OnChange has f called with each new Snapshot from now on, and when Synced becomes true; never concurrently. A slow f
// delays the next Snapshot.
func (r *Reader) OnChange(f func(*cluster.Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, f)
}

// NeedLeaderElection says no: every replica answers admissions.
func (r *Reader) NeedLeaderElection() bool { return false }

// Start keeps the Snapshot up to date until ctx ends. It fails only when the cache gives no informer for a kind of
// Kubernetes's own; absent CRDs are waited for.
func (r *Reader) Start(ctx context.Context) error {
	for _, k := range r.builtin {
		if err := r.watch(ctx, k, newObject(k)); err != nil {
			return err
		}
	}
	var discovering sync.WaitGroup
	discovering.Go(func() { r.discover(ctx) })
	defer discovering.Wait()
	var before time.Duration
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		}
		start := time.Now()
		r.rebuild()
		took := time.Since(start)
		select { // gather what comes in bursts
		case <-ctx.Done():
			return nil
		case <-time.After(r.pause(min(took, before))): // one that had to wait for a processor says nothing
		}
		before = took
	}
}

// pause is how long changes are gathered after a rebuild that took so long: in a cluster of 10,000 nodes, where a change of
// one costs 5 ms, rebuilding and what follows from it must not take more than a fiftieth of a core.
func (r *Reader) pause(took time.Duration) time.Duration {
	return min(max(r.rebuildInterval, 49*took), maxPause)
}

// watch starts an informer, or joins the one that runs. ctx also bounds the wait for its first list.
func (r *Reader) watch(ctx context.Context, k *kind, object client.Object) error {
	generation := k.reset(notSynced, false)
	informer, err := r.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("get informer: %w", err)
	}
	registration, err := informer.AddEventHandler(k.handler(generation))
	if err != nil {
		return fmt.Errorf("add handler to informer: %w", err)
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			k.synced(generation)
		}
	}()
	return nil
}

// signal is called with a kind's lock held; it never blocks.
func (r *Reader) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// rebuild makes a new Snapshot; kinds without a change share their facts with the old one.
func (r *Reader) rebuild() {
	next := *r.snapshot.Load()
	changed, settled := false, true
	for _, k := range r.kinds() {
		c, ok := k.refresh(&next)
		changed, settled = changed || c, settled && ok
	}
	if changed {
		r.snapshot.Store(&next)
	}
	justSynced := settled && !r.synced.Swap(true)
	if justSynced {
		r.log.Info("initial sync complete")
	}
	// Whoever waits for Synced must hear of it, also when nothing is new.
	if !changed && !justSynced {
		return
	}
	r.mu.Lock()
	listeners := slices.Clone(r.listeners)
	r.mu.Unlock()
	for _, f := range listeners {
		f(&next)
	}
}
