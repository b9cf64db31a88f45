package imagesync

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook/config"
)

var (
	syncs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_image_sync_total",
		Help: "Image syncs of placeholders by pool and result: synced, blocked (somebody has to fix something), backed_off (another writer takes it back), refused (by the API server), error (tried again).",
	}, []string{"pool", "result"})
	durations = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "warmpool_image_sync_duration_seconds",
		Help:    "Time from when a placeholder was seen to need other images to when they were written.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	})
	inSync = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warmpool_image_in_sync",
		Help: "1 when all placeholders of the pool in placeholders.namespace pull the images of its templates, 0 when some do not; reported by the leader.",
	}, []string{"pool"})
)

// Results that the metric counts.
const (
	resultSynced    = "synced"
	resultBlocked   = "blocked"
	resultBackedOff = "backed_off"
	resultRefused   = "refused"
	resultError     = "error"
)

func init() { metrics.Registry.MustRegister(syncs, durations, inSync) }

// showInSync shows the pools that have placeholders whose images are known, in place of those shown before. The series of
// the others go; those that stay have a value at any time.
func showInSync(before, pools map[string]bool) {
	for pool := range before {
		if _, stays := pools[pool]; !stays {
			inSync.DeleteLabelValues(pool)
		}
	}
	for pool, ok := range pools {
		value := 0.0
		if ok {
			value = 1
		}
		inSync.WithLabelValues(pool).Set(value)
	}
}

// forgetPools drops the counters of the pools that are no longer configured.
func forgetPools(before, now *config.WarmPoolConfiguration) {
	for i := range before.Pools {
		name := before.Pools[i].Name
		if !slices.ContainsFunc(now.Pools, func(pool config.Pool) bool { return pool.Name == name }) {
			syncs.DeletePartialMatch(prometheus.Labels{"pool": name})
		}
	}
}
