package live

import (
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook/cluster"
)

// source is a kind[T] of any T.
type source interface {
	// reset forgets all objects; the facts are unknown for the reason. settled: this is final, no listing is under way.
	// Events of informers that were started for an earlier generation are ignored from then on.
	reset(reason string, settled bool) (generation int)
	// synced tells that the informer of the generation has delivered its first list.
	synced(generation int)
	handler(generation int) toolscache.ResourceEventHandler
	// refresh brings the Snapshot's facts of the kind up to date.
	refresh(next *cluster.Snapshot) (changed, settled bool)
}

// kind holds the objects of one kind as the informer tells them.
type kind[T any] struct {
	name string
	log  logr.Logger
	// convert reads an object of the informer; nil leaves it out.
	convert func(obj any) (*T, error)
	// same tells whether rules would see no difference.
	same func(a, b *T) bool
	// facts is where the Snapshot keeps the kind.
	facts func(*cluster.Snapshot) *cluster.Facts[T]
	// changed wakes the goroutine that rebuilds the Snapshot.
	changed func()

	mu         sync.Mutex
	generation int
	listed     bool // the first list is complete
	settled    bool
	dirty      bool
	// shown is what the Snapshot has, pending what differs from it by now; nil: gone. So a refresh costs as much as what
	// changed, and not as much as there is.
	shown   cluster.Facts[T]
	pending map[string]*T
	// malformed is shared with the Snapshot until the next change when malformedShown.
	malformed      map[string]string
	malformedShown bool
	// large are the objects of which only the name is kept.
	large map[string]bool
	said  *rate.Limiter
}

func (k *kind[T]) reset(reason string, settled bool) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation++
	k.listed, k.settled = false, settled
	k.shown, k.pending = cluster.Unknown[T](reason), map[string]*T{}
	k.malformed, k.malformedShown = map[string]string{}, false
	k.large = map[string]bool{}
	k.count()
	k.touch()
	return k.generation
}

func (k *kind[T]) synced(generation int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation == k.generation {
		k.listed, k.settled = true, true
		k.touch()
	}
}

func (k *kind[T]) handler(generation int) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.put(generation, obj) },
		UpdateFunc: func(_, obj any) { k.put(generation, obj) },
		DeleteFunc: func(obj any) { k.remove(generation, obj) },
	}
}

func (k *kind[T]) put(generation int, obj any) {
	key, err := toolscache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		k.log.Error(err, "ignored what is no object", "kind", k.name)
		return
	}
	fact, err := k.convert(obj)
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation != k.generation {
		return
	}
	k.see(key, isTooLarge(obj))
	old, reason := k.get(key), k.malformed[key]
	switch {
	case err != nil:
		if err.Error() == reason {
			return
		}
		if !isTooLarge(obj) { // the reason might quote the object
			k.say("left out an object that cannot be read; warmpool audit says why", key)
		}
		k.set(key, nil, err.Error())
	case fact == nil:
		if old == nil && reason == "" {
			return
		}
		k.set(key, nil, "")
	default:
		if old != nil && k.same(old, fact) {
			return
		}
		k.set(key, fact, "")
	}
}

func (k *kind[T]) remove(generation int, obj any) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		k.log.Error(err, "ignored what is no object", "kind", k.name)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation != k.generation {
		return
	}
	k.see(key, false)
	if k.get(key) != nil || k.malformed[key] != "" {
		k.set(key, nil, "")
	}
}

// see notes whether an object is too large; it is called with mu held, as are those below.
func (k *kind[T]) see(key string, large bool) {
	if large == k.large[key] {
		return
	}
	if large {
		k.large[key] = true
		k.say("left out an object that is too large; warmpool_objects_too_large counts them", key)
	} else {
		delete(k.large, key)
	}
	k.count()
}

func (k *kind[T]) count() { tooLargeObjects.WithLabelValues(k.name).Set(float64(len(k.large))) }

// say logs what somebody may cause as often as they like.
func (k *kind[T]) say(what, key string) {
	if k.said == nil {
		k.said = rate.NewLimiter(rate.Every(10*time.Minute), 3)
	}
	if k.said.Allow() {
		k.log.Info(what, "kind", k.name, "object", key)
	}
}

func (k *kind[T]) get(key string) *T {
	if object, ok := k.pending[key]; ok {
		return object
	}
	return k.shown.Get(key)
}

// set notes an object, or nil and why it cannot be read, or nil alone when it is gone.
func (k *kind[T]) set(key string, object *T, malformed string) {
	k.pending[key] = object
	if k.malformed[key] != malformed {
		if k.malformedShown {
			k.malformed, k.malformedShown = maps.Clone(k.malformed), false
		}
		if malformed == "" {
			delete(k.malformed, key)
		} else {
			k.malformed[key] = malformed
		}
	}
	k.touch()
}

func (k *kind[T]) touch() {
	k.dirty = true
	k.changed()
}

func (k *kind[T]) refresh(next *cluster.Snapshot) (changed, settled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	facts := k.facts(next)
	switch {
	case !k.dirty:
	case k.listed:
		k.shown = k.shown.With(k.pending).WithMalformed(k.malformed)
		k.pending, k.malformedShown = map[string]*T{}, true
		changed = true
	default: // objects that arrive before the list is complete make no difference
		changed = facts.Known() || facts.Reason() != k.shown.Reason()
	}
	if changed {
		*facts = k.shown
	}
	k.dirty = false
	return changed, k.settled
}

// sameObject compares typed objects without the version, which differs for changes that the transforms dropped.
func sameObject[T any, P interface {
	*T
	metav1.Object
}](a, b *T) bool {
	as := *a
	P(&as).SetResourceVersion(P(b).GetResourceVersion())
	return equality.Semantic.DeepEqual(&as, b)
}

// sameContent compares what was read of custom objects; quantities by their value.
func sameContent[T any](a, b *T) bool { return equality.Semantic.DeepEqual(a, b) }

var tooLargeObjects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "warmpool_objects_too_large",
	Help: "Objects, by kind, that are too large to be read: of them only the name is kept.",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(tooLargeObjects) }
