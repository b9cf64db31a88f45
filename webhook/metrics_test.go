package webhook_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook"
)

// metric is the sum of a metric over the series that have all of the labels, each written as name=value.
func metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	all, err := metrics.Registry.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, family := range all {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			var has []string
			for _, label := range series.GetLabel() {
				has = append(has, label.GetName()+"="+label.GetValue())
			}
			if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
				sum += series.GetGauge().GetValue() + series.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// What is counted is counted by the pools of the configuration; what somebody writes into a label makes no new series.
func TestAdmissionsAreCountedByPool(t *testing.T) {
	handlers := exampleHandlers(t)
	counts := func() [4]float64 {
		return [4]float64{
			metric(t, "warmpool_admissions_total", "webhook=pods", "pool=gpu", "verdict=patched"),
			metric(t, "warmpool_admissions_total", "webhook=validate-placeholders", "pool=cpu", "verdict=denied"),
			metric(t, "warmpool_findings_total", "rule=placeholder-anti-affinity", "pool=cpu", "action=Deny"),
			metric(t, "warmpool_admissions_total", "webhook=validate-placeholders", "pool=", "verdict=denied"),
		}
	}
	before := counts()
	for _, dryRun := range []bool{false, true} {
		with := map[string]any{"dryRun": dryRun}
		admit(t, handlers[webhook.PodsPath], review(t, gpuPod, with))
		admit(t, handlers[webhook.ValidatePlaceholdersPath], review(t, brokenPlaceholder, with))
		admit(t, handlers[webhook.ValidatePlaceholdersPath], review(t, strings.Replace(brokenPlaceholder, "warmpool.sh/pool: cpu", "warmpool.sh/pool: nobody-knows", 1), with))
	}
	after := counts()
	for i := range before {
		assert.Equal(t, before[i]+1, after[i], "count %d", i)
	}
	assert.Zero(t, metric(t, "warmpool_admissions_total", "pool=no one-knows"))
}

func TestMetricsAreWellNamed(t *testing.T) {
	admit(t, exampleHandlers(t)[webhook.ValidatePlaceholdersPath], review(t, brokenPlaceholder, nil))
	all, err := metrics.Registry.Gather()
	require.NoError(t, err)
	own := all[:0]
	for _, family := range all {
		if strings.HasPrefix(family.GetName(), "warmpool_") {
			own = append(own, family)
		}
	}
	require.Len(t, own, 5)
	problems, err := promlint.NewWithMetricFamilies(own).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}
