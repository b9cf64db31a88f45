package audits

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook/audit"
)

var (
	findings = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warmpool_audit_findings",
		Help: "Findings of the last audit by rule, severity (error, warning, info) and pool, reported by the leader. There is a series only where something is found: warmpool_audit_last_success_timestamp_seconds reports whether there was an audit.",
	}, []string{"rule", "severity", "pool"})
	audits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_audits_total",
		Help: "Audits by result: success, error (the log has the cause; findings stay as they were, or could not all be reported).",
	}, []string{"result"})
	lastSuccess = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warmpool_audit_last_success_timestamp_seconds",
		Help: "When the last audit by this replica succeeded; 0 before the first, and on replicas that do not lead.",
	})
	duration = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warmpool_audit_duration_seconds",
		Help: "How long the last audit by this replica took.",
	})
)

const (
	resultSuccess = "success"
	resultError   = "error"
)

func init() {
	metrics.Registry.MustRegister(findings, audits, lastSuccess, duration)
	for _, result := range []string{resultSuccess, resultError} {
		audits.WithLabelValues(result) // from the start 0, not absent
	}
}

// series are the labels of a series of findings, in their order.
type series struct{ rule, severity, pool string }

// gauge remembers which series it shows.
type gauge struct{ shown map[series]bool }

// show sets the series of the report. Those that it lacks go, those that stay have a value at any time.
func (g *gauge) show(report *audit.Report) {
	counts := map[series]int{}
	for i := range report.Findings {
		f := &report.Findings[i]
		counts[series{f.Rule, string(f.Severity), f.Pool}]++
	}
	for s := range g.shown {
		if counts[s] == 0 {
			findings.DeleteLabelValues(s.rule, s.severity, s.pool)
		}
	}
	g.shown = map[series]bool{}
	for s, count := range counts {
		findings.WithLabelValues(s.rule, s.severity, s.pool).Set(float64(count))
		g.shown[s] = true
	}
}
