package lastseen

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Recorder keeps the ConfigMap up to date with what it is told. Add it to the manager: the leader writes.
type Recorder struct {
	client client.Client
	key    types.NamespacedName
	log    logr.Logger
	now    func() time.Time

	// debounce is how long changes are gathered; failures double the wait, up to maxWait.
	debounce, maxWait time.Duration

	changed chan struct{} // holds at most one signal

	mu     sync.Mutex
	memory memory // nil: nothing was recorded
}

var _ manager.LeaderElectionRunnable = (*Recorder)(nil)

// NewRecorder makes a Recorder for the ConfigMap in warmpool's own namespace. client reads from a cache that holds it.
func NewRecorder(client client.Client, namespace string, log logr.Logger) *Recorder {
	return &Recorder{
		client: client, key: types.NamespacedName{Namespace: namespace, Name: Name}, log: log.WithName("lastseen"),
		now: time.Now, debounce: 5 * time.Second, maxWait: 5 * time.Minute, changed: make(chan struct{}, 1),
	}
}

// Record notes what nodes of each configured pool look like now: one that stands for each instance type. A pool without
// nodes has an empty list and keeps what was seen of it; pools that are not named are forgotten. It only notes, so that
// every replica may call it at any time; the nodes must not change afterwards.
func (r *Recorder) Record(pools map[string][]*corev1.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory = r.memory.merge(pools, r.now().UTC().Format(time.DateOnly))
	r.signal()
}

func (r *Recorder) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection says yes: one replica writes.
func (r *Recorder) NeedLeaderElection() bool { return true }

// Start writes what is recorded until ctx ends. It never fails: what cannot be written is tried again.
func (r *Recorder) Start(ctx context.Context) error {
	wait, problem := r.debounce, ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		err := r.write(ctx)
		switch {
		case err == nil:
			wait, problem = r.debounce, ""
			continue
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // the cache is behind
		case err.Error() != problem && ctx.Err() == nil:
			problem = err.Error()
			r.log.Error(err, "cannot keep what nodes of the pools look like, trying again", "namespace", r.key.Namespace, "name", r.key.Name)
		}
		wait = min(2*wait, r.maxWait)
		r.signal()
	}
}

// write makes the ConfigMap hold what was recorded beside what it holds already. What it holds and cannot be read, goes.
func (r *Recorder) write(ctx context.Context) error {
	r.mu.Lock()
	recorded := r.memory
	r.mu.Unlock()
	if recorded == nil {
		return nil
	}
	configMap := &corev1.ConfigMap{}
	err := r.client.Get(ctx, r.key, configMap)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return fmt.Errorf("read: %w", err)
	}
	before, _ := parse(configMap.Data)
	data, err := recorded.upon(before).encode()
	switch {
	case err != nil:
		return err
	case absent && len(data) == 0, !absent && maps.Equal(data, configMap.Data) && len(configMap.BinaryData) == 0:
		return nil
	case absent:
		return r.client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}, Data: data,
		})
	}
	configMap.Data, configMap.BinaryData = data, nil
	return r.client.Update(ctx, configMap)
}
