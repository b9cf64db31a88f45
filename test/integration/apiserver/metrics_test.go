package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/install"
)

// metric is the sum of warmpool's metric over all series that have the labels, each written as name="value".
func metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	return metricAt(t, warmpool.MetricsURL, name, labels...)
}

func metricAt(t *testing.T, url, name string, labels ...string) float64 {
	t.Helper()
	sum, _, err := install.Metric(cleanup, url, name, labels...)
	require.NoError(t, err)
	return sum
}

// asked is how many requests warmpool has answered so far, dry runs apart.
func asked(t *testing.T) float64 {
	t.Helper()
	return metric(t, "warmpool_admissions_total")
}

// neverAsked checks that warmpool got no request meanwhile.
func neverAsked(t *testing.T, do func()) {
	t.Helper()
	before := asked(t)
	do()
	require.Equal(t, before, asked(t), "requests that warmpool was sent")
}
