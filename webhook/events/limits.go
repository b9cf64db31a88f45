package events

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	// objectBurst and objectInterval bound the Events about one object, as client-go does: so many at once, and then one in
	// such a time.
	objectBurst    = 25
	objectInterval = 5 * time.Minute
	// objects are those about which Events were made last.
	objects = 4096
	// totalBurst and totalRate bound all Events together: a new image makes one for each of hundreds of placeholders.
	totalBurst = 2000
	totalRate  = 5 // a second
)

var dropped = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "warmpool_events_dropped_total",
	Help: "Events that were not made because there were too many about one object, or altogether.",
})

func init() { metrics.Registry.MustRegister(dropped) }

// limits bound the Events that others can cause.
type limits struct {
	total *rate.Limiter

	mu       sync.Mutex
	byObject *lru.Cache
}

func newLimits() *limits {
	return &limits{total: rate.NewLimiter(totalRate, totalBurst), byObject: lru.New(objects)}
}

func (l *limits) allow(regarding *corev1.ObjectReference) bool {
	key := regarding.Kind + "/" + regarding.Namespace + "/" + regarding.Name
	l.mu.Lock()
	one, known := l.byObject.Get(key)
	if !known {
		one = rate.NewLimiter(rate.Every(objectInterval), objectBurst)
		l.byObject.Add(key, one)
	}
	l.mu.Unlock()
	limiter, ok := one.(*rate.Limiter)
	return ok && limiter.Allow() && l.total.Allow()
}
