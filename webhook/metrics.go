package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
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
)

var (
	admissions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_admissions_total",
		Help: "Admission requests answered, dry runs apart, by webhook and verdict (allowed, patched, denied, error).",
	}, []string{"webhook", "verdict"})
	findingsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_findings_total",
		Help: "Findings at admission, dry runs apart, by rule and action (Deny, Warn, Audit).",
	}, []string{"rule", "action"})
	failedOpen = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_failed_open_total",
		Help: "Workspace pods admitted without being placed, by reason.",
	}, []string{"reason"})
)

func init() {
	metrics.Registry.MustRegister(admissions, findingsTotal, failedOpen)
}

// count counts what was enforced: a dry run enforces nothing.
func (h *handler[T]) count(dryRun bool, response *admissionv1.AdmissionResponse, findings []policy.Finding) {
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
	admissions.WithLabelValues(h.name, verdict).Inc()
	for i := range findings {
		if findings[i].Action != config.Off {
			findingsTotal.WithLabelValues(findings[i].Rule.ID, string(findings[i].Action)).Inc()
		}
	}
}

// countError counts a request that got no admission response: the failure policy decides, and lets pods through unplaced.
func (h *handler[T]) countError() {
	admissions.WithLabelValues(h.name, verdictError).Inc()
	if h.failOpen {
		failedOpen.WithLabelValues(reasonError).Inc()
	}
}
