package imagesync

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	syncs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_image_sync_total",
		Help: "Image syncs of placeholders by pool and result: synced, blocked (somebody has to mend something), backed_off (another writer takes it back), refused (by the API server), error (tried again).",
	}, []string{"pool", "result"})
	durations = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "warmpool_image_sync_duration_seconds",
		Help:    "Time from when a placeholder was seen to need other images to when they were written.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	})
	inSync = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warmpool_image_in_sync",
		Help: "1 when all placeholders of the pool pull the images of its templates, 0 when some do not; told by the leader.",
	}, []string{"pool"})
)

func init() { metrics.Registry.MustRegister(syncs, durations, inSync) }

// setInSync shows the pools that have placeholders whose images are known, and no others.
func setInSync(pools map[string]bool) {
	inSync.Reset()
	for pool, ok := range pools {
		if ok {
			inSync.WithLabelValues(pool).Set(1)
		} else {
			inSync.WithLabelValues(pool).Set(0)
		}
	}
}
