package result_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/bench/result"
)

func TestParseReadsWhatWriteAndGoPrint(t *testing.T) {
	var text strings.Builder
	text.WriteString("goos: linux\nBenchmarkHandlers/pods/noop-2 \t 100\t 57000 ns/op\t 12 allocs/op\nPASS\n")
	require.NoError(t, result.Write(&text, "Creation/constant", 1000, result.Metric{Unit: "p50-ms", Value: 5.25}, result.Metric{Unit: "x-noop", Value: 1.1}))
	text.WriteString("BenchmarkHandlers/pods/noop-2 100 59000 ns/op 12 allocs/op\nBenchmarkHandlers/pods/noop-2 100 50000 ns/op\n")
	require.NoError(t, result.Write(&text, "Whole", 1, result.Metric{Unit: "s", Value: 3}))

	rows, err := result.Parse(text.String())
	require.NoError(t, err)
	assert.Equal(t, []result.Row{
		{Part: "Handlers", Name: "pods/noop", Lines: 3, Runs: 300, Metrics: map[string]float64{"ns/op": 57000, "allocs/op": 12}},
		{Part: "Creation", Name: "constant", Lines: 1, Runs: 1000, Metrics: map[string]float64{"p50-ms": 5.25, "x-noop": 1.1}},
		{Part: "Whole", Lines: 1, Runs: 1, Metrics: map[string]float64{"s": 3}},
	}, rows)

	for _, bad := range []string{"BenchmarkA 1 x s\n", "BenchmarkA 1 2 s 3\n", "BenchmarkA x 2 s\n"} {
		_, err := result.Parse(bad)
		assert.ErrorContains(t, err, "is not of a benchmark")
	}
}

func TestQuantile(t *testing.T) {
	all := []int{4, 1, 3, 2, 5}
	assert.Equal(t, []int{1, 3, 5}, []int{result.Quantile(all, 0), result.Quantile(all, .5), result.Quantile(all, 1)})
	assert.Equal(t, 2, result.Quantile(all[:4], .5))
}
