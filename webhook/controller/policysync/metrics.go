package policysync

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	resultSame      = "same"
	resultDifferent = "different"
)

var policyCurrent = prometheus.NewDesc("warmpool_placement_policy_current",
	"1 when the policy that places pods is what configuration and facts ask for, and samples have been placed as the webhook would for 10 s, else 0; told by the leader.", nil, nil)

// metrics are those of a Keeper; it is their collector, so that there are none where a webhook places pods.
type metrics struct {
	checks  *prometheus.CounterVec
	current *atomic.Int32 // -1: not to be told
}

func newMetrics() metrics {
	m := metrics{current: &atomic.Int32{}, checks: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_placement_checks_total",
		Help: "Sample pods that the leader had the API server place as a dry run, by result (same, different from the webhook's placement).",
	}, []string{"result"})}
	m.current.Store(-1)
	for _, result := range []string{resultSame, resultDifferent} {
		m.checks.WithLabelValues(result) // from the start 0, not absent
	}
	return m
}

// setCurrent gives what it was before.
func (m metrics) setCurrent(current bool) (was bool) {
	var value int32
	if current {
		value = 1
	}
	return m.current.Swap(value) == 1
}

func (m metrics) count(result string) { m.checks.WithLabelValues(result).Inc() }

// Describe implements prometheus.Collector.
func (m metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- policyCurrent
	m.checks.Describe(descriptions)
}

// Collect implements prometheus.Collector. It gives warmpool_placement_policy_current, of the leader alone, and
// warmpool_placement_checks_total.
func (m metrics) Collect(found chan<- prometheus.Metric) {
	if current := m.current.Load(); current >= 0 {
		found <- prometheus.MustNewConstMetric(policyCurrent, prometheus.GaugeValue, float64(current))
	}
	m.checks.Collect(found)
}
