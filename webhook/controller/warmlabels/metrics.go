package warmlabels

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var placeholders = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "warmpool_placeholders",
	Help: "Placeholder pods by pool and state: warm (their images are on the node), pulling, failed (the pull keeps failing), pending (without a node); reported by the leader.",
}, []string{"pool", "state"})

func init() { metrics.Registry.MustRegister(placeholders) }

// counts are the placeholder pods of each pool; a pool whose placeholders have no pods has an entry too.
type counts map[string]map[state]int

// show shows the pools in place of those shown before: the series of the others go.
func (c counts) show(before counts) {
	for pool := range before {
		if _, stays := c[pool]; !stays {
			placeholders.DeletePartialMatch(prometheus.Labels{"pool": pool})
		}
	}
	for pool, of := range c {
		for _, s := range states {
			placeholders.WithLabelValues(pool, string(s)).Set(float64(of[s]))
		}
	}
}
