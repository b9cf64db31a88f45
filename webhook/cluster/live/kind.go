package live

import (
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook/cluster"
)

// kind holds the objects of one kind as an informer delivers them.
type kind struct {
	cluster.AnyKind
	name string
	log  logr.Logger
	// changed has the Snapshot rebuilt.
	changed func()
	// show has a Snapshot hold the facts; Put, but for what is derived of them.
	show func(*cluster.Snapshot, cluster.AnyFacts)
	// awaited tells that warmpool is not ready before the kind is read.
	awaited bool

	mu         sync.Mutex
	generation int
	listed     bool // the first list is complete
	settled    bool // this is final: no listing is under way
	dirty      bool
	// facts are what the Snapshot has or will have next, pending what differs from it by now; nil: gone. So a refresh costs
	// as much as what changed, and not as much as there is.
	facts   cluster.AnyFacts
	pending map[string]any
	shown   cluster.AnyFacts // that the Snapshot has
	// malformed is shared with the Snapshot until the next change when malformedShown.
	malformed      map[string]string
	malformedShown bool
	// large are the objects of which only the name is kept.
	large map[string]bool
	said  *rate.Limiter
}

func (r *Reader) newKind(k cluster.AnyKind) *kind {
	return &kind{
		AnyKind: k, name: k.Describe().Kind, log: r.log, changed: r.signal, show: k.Put, awaited: true,
		said: rate.NewLimiter(rate.Every(10*time.Minute), 3),
	}
}

// reset forgets all objects; the facts are unknown for the reason. Events of informers that were started for an earlier
// generation are ignored from then on.
func (k *kind) reset(reason string, settled bool) (generation int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation++
	k.listed, k.settled = false, settled
	k.facts, k.pending = k.Unknown(reason), map[string]any{}
	k.malformed, k.malformedShown = map[string]string{}, false
	k.large = map[string]bool{}
	k.count()
	k.touch()
	return k.generation
}

// synced tells that the informer of the generation has delivered its first list.
func (k *kind) synced(generation int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation == k.generation {
		k.listed, k.settled = true, true
		k.touch()
	}
}

func (k *kind) handler(generation int) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.put(generation, obj) },
		UpdateFunc: func(_, obj any) { k.put(generation, obj) },
		DeleteFunc: func(obj any) { k.remove(generation, obj) },
	}
}

func (k *kind) put(generation int, obj any) {
	key, err := toolscache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		k.log.Error(err, "ignored what is no object", "kind", k.name)
		return
	}
	fact, err := factOf(k.AnyKind, obj)
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
	case fact == nil && old == nil && reason == "", old != nil && fact != nil && k.Same(old, fact):
	default:
		k.set(key, fact, "")
	}
}

// factOf reads an object that was transformed.
func factOf(k cluster.AnyKind, obj any) (any, error) {
	switch {
	case !isTooLarge(obj):
		return k.Fact(obj)
	case k.Describe().OmitTooLarge:
		return nil, nil
	default:
		return nil, errTooLarge
	}
}

func (k *kind) remove(generation int, obj any) {
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
func (k *kind) see(key string, large bool) {
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

func (k *kind) count() { tooLargeObjects.WithLabelValues(k.name).Set(float64(len(k.large))) }

// say logs what somebody may cause as often as they like.
func (k *kind) say(what, key string) {
	if k.said.Allow() {
		k.log.Info(what, "kind", k.name, "object", key)
	}
}

func (k *kind) get(key string) any {
	if object, ok := k.pending[key]; ok {
		return object
	}
	return k.facts.Object(key)
}

// set notes an object, or nil and why it cannot be read, or nil alone when it is gone.
func (k *kind) set(key string, object any, malformed string) {
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

func (k *kind) touch() {
	k.dirty = true
	k.changed()
}

// refresh brings the facts of a Snapshot up to date.
func (k *kind) refresh(next *cluster.Snapshot) (changed, settled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dirty && k.listed {
		k.facts = k.facts.Changed(k.pending, k.malformed)
		k.pending, k.malformedShown = map[string]any{}, true
		changed = true
	} else if k.dirty { // objects that arrive before the list is complete make no difference
		changed = k.shown == nil || k.shown.Known() || k.shown.Reason() != k.facts.Reason()
	}
	if changed {
		k.show(next, k.facts)
		k.shown = k.facts
	}
	k.dirty = false
	return changed, k.settled || !k.awaited
}

var tooLargeObjects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "warmpool_objects_too_large",
	Help: "Objects, by kind, that are too large to be read: of them only the name is kept.",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(tooLargeObjects) }
