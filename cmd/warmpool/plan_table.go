package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
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
	fmt.Fprintf(out, "POOL %s: %d starts, objective %g %%, lead time %s, places of a node: %d\n", p.Name, p.Starts, rounded(100*p.Objective, 2),
		time.Duration(p.LeadTimeSeconds*float64(time.Second)), p.Places)
	fmt.Fprintf(out, "Judged on %d starts from %s to %s, which nothing was learned from. Hours and cost are of a week.\n\n",
		p.Judged.Starts, p.Judged.From.Format(time.RFC3339), p.Judged.To.Format(time.RFC3339))
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
	out.WriteString("\nPlaceholders by hour of the week, UTC:\n\n       ")
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

// detail says what was set.
func (p *policyPlan) detail() string {
	if p.Replicas != nil {
		return fmt.Sprintf("%d always", *p.Replicas)
	}
	return p.Detail
}
