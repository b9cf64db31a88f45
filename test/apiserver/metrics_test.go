package apiserver_test

import (
	"bufio"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// metric is the sum of warmpool's metric over all series that have the labels, each written as name="value".
func metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	return metricAt(t, warmpool.MetricsURL, name, labels...)
}

func metricAt(t *testing.T, url, name string, labels ...string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(cleanup, http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close() //nolint:errcheck // only read from
	require.Equal(t, http.StatusOK, response.StatusCode)
	sum := 0.0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		series, value, ok := strings.Cut(lines.Text(), " ")
		seriesName, seriesLabels, _ := strings.Cut(series, "{")
		if !ok || seriesName != name || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(seriesLabels, l) }) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err, lines.Text())
		sum += n
	}
	require.NoError(t, lines.Err())
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
