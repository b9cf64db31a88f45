package main

import (
	"fmt"
	"slices"
	"strings"

	"warmpool.sh/test/bench/result"
)

// goal is a bound for one figure.
type goal struct {
	text, part, name, unit string
	limit                  float64
	atLeast                bool // the limit is the least, not the most
}

var goals = []goal{
	{text: "What warmpool adds to a creation, over what a constant patch of the same size adds", part: "Creation", name: "warmpool", unit: "added-x-constant", limit: 1.10},
	{text: "The same with nothing to change, over what a no-op adds", part: "Placed", name: "warmpool", unit: "added-x-noop", limit: 1.05},
	{text: "p99 of the whole creation, over that with a no-op", part: "Creation", name: "warmpool", unit: "p99-x-noop", limit: 1.2},
	{text: "Errors of 200 creations at once", part: "AtOnce", name: "warmpool", unit: "errors", limit: 0},
	{text: "What the exported policy adds, over what a constant patch adds", part: "Creation", name: "policy", unit: "added-x-constant", limit: 1},
	{text: "Handler of pods, over a no-op", part: "Handlers", name: "pods/ratios", unit: "x-noop", limit: 1.5},
	{text: "Handler of placeholders, over a no-op", part: "Handlers", name: "placeholders/ratios", unit: "x-noop", limit: 1.5},
	{text: "Pods: the framework's default path, over the handler", part: "Handlers", name: "pods/ratios", unit: "framework-x", limit: 2.8, atLeast: true},
	{text: "Placeholders: the framework's default path, over the handler", part: "Handlers", name: "placeholders/ratios", unit: "framework-x", limit: 2.8, atLeast: true},
	{text: "Pods: allocations, over the framework's", part: "Handlers", name: "pods/ratios", unit: "allocs-part", limit: .25},
	{text: "Placeholders: allocations, over the framework's", part: "Handlers", name: "placeholders/ratios", unit: "allocs-part", limit: .25},
	{text: "A pod in a cluster of 10,000 nodes, over one of 10", part: "Scale", name: "pod/10000-nodes", unit: "x-10", limit: 1.1},
	{text: "A placeholder in a cluster of 10,000 nodes, over one of 10", part: "Scale", name: "placeholder/10000-nodes", unit: "x-10", limit: 1.1},
	{text: "Resident with 5,000 nodes and 2,000 pods, MiB", part: "Memory", unit: "resident-MiB", limit: 150},
	{text: "From a template's change to its placeholders' patches, p50, ms", part: "ImageSync", name: "template-change", unit: "p50-ms", limit: 250},
	{text: "The same, p99, ms", part: "ImageSync", name: "template-change", unit: "p99-ms", limit: 1000},
	{text: "500 templates and 500 placeholders from the start, s", part: "ImageSync", name: "cold", unit: "s", limit: 60},
	{text: "Audit of 10,000 nodes, 5,000 Workspace pods, 500 placeholders, s", part: "Audit", name: "json", unit: "s", limit: 10},
	{text: "The same, resident, MiB", part: "Audit", name: "json", unit: "resident-MiB", limit: 1024},
}

const (
	met         = "met"
	metWithin   = "met, not beyond doubt"
	missedWhole = "**missed**"
	missedMaybe = "**missed**, not beyond doubt"
)

// judge gives the figure as text, and the verdict.
func (g goal) judge(m *measured) (figure, verdict string, err error) {
	at := slices.IndexFunc(m.Rows, func(r result.Row) bool { return r.Part == g.part && (g.name == "" || r.Name == g.name) })
	if at < 0 {
		return "", "", fmt.Errorf("no row %s/%s", g.part, g.name)
	}
	metrics := m.Rows[at].Metrics
	value, ok := metrics[g.unit]
	if !ok {
		return "", "", fmt.Errorf("row %s/%s has no %s", g.part, g.name, g.unit)
	}
	within := func(value float64) bool { return value == g.limit || value < g.limit != g.atLeast }
	sure := true
	for _, bound := range []string{"-low", "-high"} {
		if other, ok := metrics[g.unit+bound]; ok && within(other) != within(value) {
			sure = false
		}
	}
	switch {
	case within(value) && sure:
		verdict = met
	case within(value):
		verdict = metWithin
	case sure:
		verdict = missedWhole
	default:
		verdict = missedMaybe
	}
	return cell(metrics, g.unit), verdict, nil
}

func (g goal) bound() string {
	if g.atLeast {
		return "at least " + number(g.limit)
	}
	return "at most " + number(g.limit)
}

// writeGoals writes the table of goals and what to make of it.
func (m *measured) writeGoals(text *strings.Builder) error {
	text.WriteString("| | Measured | To be reached | |\n|---|--:|--:|---|\n")
	counts := map[string]int{}
	for _, g := range goals {
		figure, verdict, err := g.judge(m)
		if err != nil {
			return fmt.Errorf("%s: %w", g.text, err)
		}
		counts[verdict]++
		fmt.Fprintf(text, "| %s | %s | %s | %s |\n", g.text, figure, g.bound(), verdict)
	}
	fmt.Fprintf(text, "\nOf %d goals %d are met and %d are missed", len(goals), counts[met]+counts[metWithin], counts[missedWhole]+counts[missedMaybe])
	if unsure := counts[metWithin] + counts[missedMaybe]; unsure > 0 {
		fmt.Fprintf(text, "; %d of these verdicts may be noise: the bounds of 95 %% confidence, in parentheses, are on both sides of the limit", unsure)
	}
	text.WriteString(".\n")
	return nil
}
