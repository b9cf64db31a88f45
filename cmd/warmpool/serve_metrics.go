package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Reasons for which a caller is refused.
const (
	refusedNoCertificate = "no-certificate"
	refusedUntrusted     = "untrusted"
	refusedName          = "name"
)

var (
	configReloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_config_reloads_total",
		Help: "Configuration files read, by result (applied, refused).",
	}, []string{"result"})
	configApplied = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warmpool_config_applied_timestamp_seconds",
		Help: "When the configuration in force was read.",
	})
	configSuccessful = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warmpool_config_last_reload_successful",
		Help: "1 when the configuration file as it is now is in force, 0 when it was refused and an older one is.",
	})
	snapshotTaken = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warmpool_snapshot_timestamp_seconds",
		Help: "When the facts in force were taken from the cluster, which is done when some change; 0 before the first.",
	})
	callersRefused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warmpool_callers_refused_total",
		Help: "TLS handshakes refused for the caller's client certificate, by reason (no-certificate, untrusted, name).",
	}, []string{"reason"})
)

func init() {
	metrics.Registry.MustRegister(configReloads, configApplied, configSuccessful, snapshotTaken, callersRefused)
	for _, reason := range []string{refusedNoCertificate, refusedUntrusted, refusedName} {
		callersRefused.WithLabelValues(reason) // from the start 0, not absent
	}
}
