package starts

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "warmpool_workspace_start_seconds",
		Help:    "Time from the creation of a Workspace pod to the start of its container, in whole seconds, by pool and path: coexist (beside a placeholder that has its image), preempt (in the place of one), cold; told by the leader.",
		Buckets: []float64{1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 420, 600, 900},
	}, []string{"pool", "path"})
	starts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_workspace_starts_total",
		Help: "Workspace pods that have started, by pool, path and, where that is cold, the cause: image-not-pulled, no-warm-node, zone, other-node; told by the leader.",
	}, []string{"pool", "path", "cause"})
)

func init() { metrics.Registry.MustRegister(seconds, starts) }
