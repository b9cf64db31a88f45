// Package result is what the measurements print and what the report reads: lines in the format of Go's benchmarks, which
// benchstat compares.
package result

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Metric is one figure of a row. Its unit has no space, such as "p50-ms".
type Metric struct {
	Unit  string
	Value float64
}

// Write prints a line. The name is that of the part, a slash, and the row's own.
func Write(out io.Writer, name string, runs int, metrics ...Metric) error {
	line := fmt.Appendf(nil, "Benchmark%s\t%d", name, runs)
	for _, m := range metrics {
		line = fmt.Appendf(line, "\t%.5g %s", m.Value, m.Unit)
	}
	_, err := out.Write(append(line, '\n'))
	return err
}

// Row is what was measured under one name.
type Row struct {
	Part string `json:"part"`
	Name string `json:"name,omitempty"`
	// Lines that there were of it, their Runs together, and Metrics, by unit: of several lines the median.
	Lines   int                `json:"lines"`
	Runs    int                `json:"runs"`
	Metrics map[string]float64 `json:"metrics"`
}

// processors is the number that go test puts behind a name.
var processors = regexp.MustCompile(`-[0-9]+$`)

// Parse gives the rows of a text in their order. Other lines are left out; the error names a line that only begins as one.
func Parse(text string) ([]Row, error) {
	var rows []Row
	values, runs := map[string]map[string][]float64{}, map[string]int{} // by name, the former by unit too
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		if values[name] == nil {
			part, own, _ := strings.Cut(name, "/")
			rows = append(rows, Row{Part: part, Name: own})
			values[name] = map[string][]float64{}
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("this line is not of a benchmark: write the number of runs behind the name: %s", line)
		}
		runs[name] += n
		for pair := range slices.Chunk(fields[2:], 2) {
			value, err := strconv.ParseFloat(pair[0], 64)
			if err != nil || len(pair) != 2 {
				return nil, fmt.Errorf("this line is not of a benchmark: write %q as value and unit in turn: %s", pair, line)
			}
			values[name][pair[1]] = append(values[name][pair[1]], value)
		}
	}
	for i := range rows {
		row := &rows[i]
		name := strings.TrimSuffix(row.Part+"/"+row.Name, "/")
		row.Runs, row.Metrics = runs[name], map[string]float64{}
		for unit, all := range values[name] {
			row.Lines, row.Metrics[unit] = max(row.Lines, len(all)), Quantile(all, .5)
		}
	}
	return rows, nil
}

// Quantile gives the value below which that share of all lies; of an even number the median is the lower one. There must be
// some value.
func Quantile[T cmp.Ordered](all []T, share float64) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(share*float64(len(sorted)-1))]
}
