package starts

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/policy"
)

// Occupancy tells which nodes have pods of Workspaces. It knows none of them until the watch has brought all.
type Occupancy struct {
	mu     sync.Mutex
	known  bool
	nodeOf map[types.UID]string
	pods   map[string]int // by node
	// version grows with each change of what Has says; changed tells of it.
	version uint64
	changed func()
}

func newOccupancy() *Occupancy {
	return &Occupancy{nodeOf: map[types.UID]string{}, pods: map[string]int{}, changed: func() {}}
}

// OnChange has f called after each change; to be set before the Controller starts.
func (o *Occupancy) OnChange(f func()) { o.changed = f }

// Has tells whether a node has a Workspace; known is false while that cannot be told.
func (o *Occupancy) Has(node string) (has, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pods[node] > 0, o.known
}

// Version differs when Has may answer otherwise than before.
func (o *Occupancy) Version() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.version
}

// complete tells that all pods have been seen.
func (o *Occupancy) complete() { o.update(func() bool { o.known = true; return true }) }

// reset forgets all: the pods to count are others now.
func (o *Occupancy) reset() {
	o.update(func() bool {
		o.known = false
		clear(o.nodeOf)
		clear(o.pods)
		return true
	})
}

// see counts a pod where it is; one that has ended, or is about to, is nowhere.
func (o *Occupancy) see(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || policy.Ended(pod) {
		o.drop(pod.UID)
		return
	}
	o.update(func() bool {
		if _, counted := o.nodeOf[pod.UID]; counted { // a pod never changes its node
			return false
		}
		o.nodeOf[pod.UID] = pod.Spec.NodeName
		o.pods[pod.Spec.NodeName]++
		return o.pods[pod.Spec.NodeName] == 1
	})
}

func (o *Occupancy) drop(uid types.UID) {
	o.update(func() bool {
		node, counted := o.nodeOf[uid]
		if !counted {
			return false
		}
		delete(o.nodeOf, uid)
		if o.pods[node]--; o.pods[node] > 0 {
			return false
		}
		delete(o.pods, node)
		return true
	})
}

// update tells of what f has changed, where it says so.
func (o *Occupancy) update(f func() bool) {
	o.mu.Lock()
	changed := f()
	if changed {
		o.version++
	}
	o.mu.Unlock()
	if changed {
		o.changed()
	}
}
