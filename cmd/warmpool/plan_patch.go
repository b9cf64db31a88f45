package main

import (
	"fmt"
	"io"
	"strings"
)

// printPlanPatch writes the size of each pool as it belongs into the WarmPoolConfiguration.
func printPlanPatch(out io.Writer, report *planReport) error {
	var text strings.Builder
	text.WriteString("# For pools[] of the WarmPoolConfiguration, by name. Recommend only reports what warmpool would keep; Apply sets it.\npools:\n")
	for _, pool := range report.Pools {
		most := 0
		for _, hour := range pool.Hours {
			most = max(most, hour.Replicas)
		}
		bound, why := max(report.least, 1, most+(most+1)/2), fmt.Sprintf("the hours need up to %d; the rest is for bursts", most)
		if report.most > 0 {
			bound, why = report.most, "as given"
		}
		fmt.Fprintf(&text, "- name: %q\n  size:\n    mode: Recommend\n    objective: %g\n    min: %d\n    max: %d # %s\n",
			pool.Name, pool.Objective, report.least, bound, why)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
