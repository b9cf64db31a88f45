package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printPlanTable writes the report for people.
func printPlanTable(out io.Writer, report *planReport) error {
	var text strings.Builder
	for i, pool := range report.Pools {
		if i > 0 {
			text.WriteString("\n")
		}
		if err := planTable(&text, pool); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func planTable(out *strings.Builder, p *poolPlan) error {
	fmt.Fprintf(out, "POOL %s: %d starts, %s, lead time %s, places of a node: %d\n", p.Name, p.Starts, p.promise(), p.leadTime(), p.Places)
	fmt.Fprintf(out, "%s Hours and cost are of a week.\n\n", p.basis())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	weeks := p.Judged.To.Sub(p.Judged.From).Hours() / (7 * 24)
	var lines strings.Builder
	lines.WriteString("  POLICY\tWARM\tIDLE\tMEAN WAIT\tP50\tP95\tNODE-HOURS\tCOST\t\n")
	for i := range p.Policies {
		row := &p.Policies[i]
		line := fmt.Sprintf("  %s\t%.1f %%\t%.2f\t%.0f s\t%.0f s\t%.0f s\t%.0f\t%.0f\t%s", row.Name, 100*row.Hits, row.Idle, row.MeanWaitSeconds,
			row.P50WaitSeconds, row.P95WaitSeconds, row.NodeHours/weeks, row.Cost/weeks, row.detail())
		lines.WriteString(strings.TrimRight(line, "\t") + "\n")
	}
	if _, err := io.WriteString(w, lines.String()); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nPlaceholders by hour of the week, %s:\n\n       ", p.zone())
	for hour := range 24 {
		fmt.Fprintf(out, "%3d", hour)
	}
	for i, hour := range p.Hours {
		if hour.Hour == 0 {
			fmt.Fprintf(out, "\n  %-5.3s", hour.Weekday)
		}
		fmt.Fprintf(out, "%3d", p.Hours[i].Replicas)
	}
	out.WriteString("\n")
	return nil
}
