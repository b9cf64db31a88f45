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
		bound, why := max(pool.asked.Min, 1, most+(most+1)/2), fmt.Sprintf("the hours need up to %d; the rest is for bursts", most)
		if pool.asked.Max < mostPlaceholders {
			bound, why = pool.asked.Max, "as given"
		}
		promise := fmt.Sprintf("objective: %g", pool.Objective)
		if pool.Objective == 0 {
			promise = fmt.Sprintf("cost: {waitingHour: %g, nodeHour: %g}", pool.asked.WaitingHour, pool.asked.IdleHour)
		}
		fmt.Fprintf(&text, "- name: %q\n  size:\n    mode: Recommend\n    %s\n    min: %d\n    max: %d # %s\n", pool.Name, promise, pool.asked.Min, bound, why)
		if pool.zone() != "UTC" {
			fmt.Fprintf(&text, "    timeZone: %s\n", pool.zone())
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
