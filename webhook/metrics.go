package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook/config"
)

// Verdicts of an admission in the metrics.
const (
	verdictAllowed = "allowed"
	verdictPatched = "patched"
	verdictDenied  = "denied"
	verdictError   = "error"
)

// Reasons for which a Workspace pod was admitted without being placed.
const (
	reasonNotSynced = "not-synced"
	reasonError     = "error"
	reasonTooLarge  = "too-large"
)

var (
	admissions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_admissions_total",
		Help: "Admission requests answered, dry runs apart, by webhook, pool (empty where there is none) and verdict (allowed, patched, denied, error).",
	}, []string{"webhook", "pool", "verdict"})
	findingsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_findings_total",
		Help: "Findings at admission, dry runs apart, by rule, pool (empty where there is none) and action (Deny, Warn, Audit).",
	}, []string{"rule", "pool", "action"})
	failedOpen = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_failed_open_total",
		Help: "Workspace pods admitted without being placed, by reason.",
	}, []string{"reason"})
	inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warmpool_admissions_in_flight",
		Help: "Admission requests in work.",
	})
	refusedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_admissions_refused_total",
		Help: "Admission requests refused (429) because too much was in work, by webhook; the API server tries again.",
	}, []string{"webhook"})
)

func init() {
	metrics.Registry.MustRegister(admissions, findingsTotal, failedOpen, inFlight, refusedTotal)
	for _, reason := range []string{reasonNotSynced, reasonError, reasonTooLarge} {
		failedOpen.WithLabelValues(reason) // from the start 0, not absent
	}
}

// count counts what was enforced: a dry run enforces nothing.
func (h *handler[T]) count(dryRun bool, response *admissionv1.AdmissionResponse, v *Verdict) {
	if dryRun {
		return
	}
	verdict := verdictAllowed
	switch {
	case !response.Allowed:
		verdict = verdictDenied
	case response.Patch != nil:
		verdict = verdictPatched
	}
	admissions.WithLabelValues(h.name, v.Pool, verdict).Inc()
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Action != config.Off {
			findingsTotal.WithLabelValues(f.Rule.ID, v.Pool, string(f.Action)).Inc()
		}
	}
}

// countError counts a request that got no admission response: the failure policy decides, and lets pods through unplaced.
func (h *handler[T]) countError() {
	admissions.WithLabelValues(h.name, "", verdictError).Inc()
	if h.failOpen {
		failedOpen.WithLabelValues(reasonError).Inc()
	}
}
