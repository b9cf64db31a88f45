package scaling

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	wantedPlaceholders = gauge("warmpool_pool_size_wanted", "Placeholders that a pool's demand asks for, within the bounds of its configuration; told by the leader, as all of warmpool_pool.")
	promisedSize       = gauge("warmpool_pool_size_promised", "Placeholders that a pool is to have: those wanted, but for what limits, failing pulls or somebody else hold back.")
	hadSize            = gauge("warmpool_pool_size_had", "Placeholders of a pool that are warm.")
	promisedHits       = gauge("warmpool_pool_hits_promised", "Share of the last Workspaces of a pool that was promised a warm place.")
	hadHits            = gauge("warmpool_pool_hits_had", "Share of the last Workspaces of a pool that had a warm place.")
	leadTime           = gauge("warmpool_pool_lead_time_seconds", "Time from the creation of a placeholder to its images being on its node, as new nodes took of late.")
	expectedStarts     = gauge("warmpool_pool_expected_starts_per_hour", "Workspaces of a pool that are expected to start in an hour, by the weeks before.")
	held               = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warmpool_pool_held",
		Help: "1 while a pool has not the size that its demand asks for, by reason: pulls, limit, pending, scaler.",
	}, []string{"pool", "reason"})
	resizes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_pool_resizes_total",
		Help: "Times that the replicas of a pool's placeholders were set.",
	}, []string{"pool"})
	perPool = []*prometheus.GaugeVec{wantedPlaceholders, promisedSize, hadSize, promisedHits, hadHits, leadTime, expectedStarts}
)

func gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"pool"})
}

func init() {
	for _, g := range perPool {
		metrics.Registry.MustRegister(g)
	}
	metrics.Registry.MustRegister(held, resizes)
}

// forget takes the series of a pool away.
func forget(pool string) {
	for _, g := range perPool {
		g.DeleteLabelValues(pool)
	}
	held.DeletePartialMatch(prometheus.Labels{"pool": pool})
	resizes.DeleteLabelValues(pool)
}

func showHeld(pool, reason string) {
	for _, r := range heldReasons {
		value := 0.0
		if r == reason {
			value = 1
		}
		held.WithLabelValues(pool, r).Set(value)
	}
}
