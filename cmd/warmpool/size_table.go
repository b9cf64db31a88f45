package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/sizing"
)

// width is that of a terminal in which the table is to be readable; single words may be longer.
const width = 100

// sizeTable writes pools for people. Nothing is written before all is there, so that no write can fail half-way.
type sizeTable struct{ strings.Builder }

func printSizes(out io.Writer, report *sizeReport) error {
	t := &sizeTable{}
	for i, pool := range report.Pools {
		if i > 0 {
			t.line("")
		}
		t.pool(pool)
	}
	_, err := io.WriteString(out, t.String())
	return err
}

func (t *sizeTable) pool(p *poolReport) {
	if p.Missing != "" {
		t.wrapped(fmt.Sprintf("POOL %s (mode %s): ", p.Name, p.Mode), "cannot be sized: "+p.Missing)
		t.wrapped("  Do: ", p.Fix)
		t.problems(p)
		return
	}
	t.wrapped(fmt.Sprintf("POOL %s (mode %s): ", p.Name, p.Mode), "numbers from "+sources[p.Source])
	for _, shape := range p.Shapes {
		t.shape(shape, p.Source)
	}
	if len(p.Templates) > 0 {
		t.line("")
		rows := [][]string{{"TEMPLATE", "WORKSPACE", "REQUEST"}}
		for _, template := range p.Templates {
			rows = append(rows,
				[]string{template.Name, "default", textOr(template.Default, "nothing")},
				[]string{"", "smallest", textOr(template.Smallest, "nothing")})
		}
		t.table(rows)
	}
	for _, plan := range p.Placeholders {
		t.plan(p, plan)
	}
	t.autoscaling(p.Autoscaling)
	t.line("")
	t.problems(p)
	t.verdict(p)
}

var sources = map[sizing.Source]string{
	sizing.FromNodes:      "its nodes",
	sizing.FromNodeClaims: "its NodeClaims; it has no node yet, and real ones may offer less",
	sizing.FromLastSeen:   "the nodes that it had last; it has none now",
	sizing.FromConfig:     "sizing.allocatable in the configuration; it has no node",
}

func (t *sizeTable) shape(s *shapeReport, source sizing.Source) {
	count := ""
	if source == sizing.FromNodes {
		count = fmt.Sprintf(" (%s)", phrase.Count(s.Nodes, "node"))
	}
	t.line("")
	t.line(s.Name + count)
	rows := [][]string{{"  RESOURCE", "ALLOCATABLE", "DAEMONSETS", "AVAILABLE"}}
	for _, r := range s.Resources {
		rows = append(rows, []string{"  " + string(r.Resource), r.Allocatable.String(), r.DaemonSets.String(), r.Available.String()})
	}
	t.table(rows)
	for _, r := range s.Resources {
		if len(r.Largest) == 0 {
			continue
		}
		var parts []string
		for _, d := range r.Largest {
			parts = append(parts, d.Name+" "+d.Request.String())
		}
		t.wrapped("  Largest DaemonSets, "+string(r.Resource)+": ", strings.Join(parts, ", "))
	}
}

func textOr(list corev1.ResourceList, none string) string {
	if text := sizing.Quantities(list); text != "" {
		return text
	}
	return none
}

func (t *sizeTable) plan(p *poolReport, plan *sizing.Plan) {
	title := string(plan.Mode)
	if plan.Mode == p.Mode {
		title += " (configured)"
	}
	request := "no placeholder would do"
	if plan.Request != nil {
		request = "request " + sizing.Quantities(plan.Request)
	}
	for _, name := range slices.SortedFunc(maps.Keys(plan.LimitedBy), cpuAndMemoryFirst) {
		request += fmt.Sprintf("; %s limited by template %s", name, plan.LimitedBy[name])
	}
	t.line("")
	t.wrapped("PLACEHOLDER, "+title+": ", request)
	var rows [][]string
	for _, room := range plan.Rooms {
		on := ""
		if len(plan.Rooms) > 1 {
			on = " on " + room.Shape
		}
		rows = append(rows,
			[]string{"  largest Workspace beside it" + on, textOr(room.Coexist, "none")},
			[]string{"  largest Workspace in its place" + on, textOr(room.Preempt, "none")})
	}
	for _, template := range plan.Templates {
		rows = append(rows, []string{"  template " + template.Name, placeOf(&template, len(plan.Rooms))})
	}
	t.table(rows)
	for _, fault := range plan.Faults {
		t.wrapped("  ! ", fault)
	}
}

// placeOf says where the default Workspace of a template goes, of so many shapes.
func placeOf(template *sizing.TemplateRoom, shapes int) string {
	coexists, preempts := len(template.CoexistsOn), len(template.PreemptsOn)
	switch {
	case coexists == shapes:
		return "fits beside it"
	case preempts == 0:
		return "does not fit"
	case coexists > 0 && preempts == shapes:
		return "fits beside it on " + strings.Join(template.CoexistsOn, ", ") + ", in its place elsewhere"
	case preempts == shapes:
		return "fits in its place"
	case coexists > 0:
		return "fits on " + strings.Join(template.PreemptsOn, ", ") + ", beside it on " + strings.Join(template.CoexistsOn, ", ")
	default:
		return "fits in its place on " + strings.Join(template.PreemptsOn, ", ")
	}
}

func (t *sizeTable) autoscaling(a *autoscalingReport) {
	t.line("")
	t.line(fmt.Sprintf("CPA, with %s that no placeholder holds", phrase.Count(a.OtherNodes, "node")))
	rows := [][]string{{"  RATIO", "SETTLES AT", "MEANING"}}
	for _, c := range a.Configured {
		ratio, at := "  not linear", ""
		if c.Linear != nil {
			ratio, at = "  "+ratioText(c.Linear), settles(c.Replicas, c.FromAbove)
		}
		rows = append(rows, []string{ratio, at, strings.TrimSuffix("configured, "+c.Name+": "+c.Problem, ": ")})
	}
	for _, r := range a.Ratios {
		rows = append(rows, []string{"  " + ratioText(&r.Linear), settles(r.Replicas, r.FromAbove), r.Meaning})
	}
	t.table(rows)
	least := "nodesPerReplica 1"
	if !a.CoresPerNode.IsZero() {
		least += " or coresPerReplica " + fmt.Sprintf("%g", sizing.Cores(a.CoresPerNode))
	}
	t.wrapped("  ", "With "+least+" or less each placeholder's node calls for the next one, up to max.")
}

// settles is where a count stays, coming from few and from many.
func settles(fromBelow, fromAbove int) string {
	if fromBelow == 0 {
		return "no end"
	}
	if fromAbove > fromBelow {
		return fmt.Sprintf("%d, %d from above", fromBelow, fromAbove)
	}
	return phrase.Count(fromBelow, "placeholder")
}

func ratioText(l *sizing.Linear) string {
	var parts []string
	if l.NodesPerReplica > 0 {
		parts = append(parts, fmt.Sprintf("nodesPerReplica %g", l.NodesPerReplica))
	}
	if l.CoresPerReplica > 0 {
		parts = append(parts, fmt.Sprintf("coresPerReplica %g", l.CoresPerReplica))
	}
	return strings.Join(parts, ", ")
}

func (t *sizeTable) problems(p *poolReport) {
	for _, problem := range p.Problems {
		t.wrapped("Note: ", problem)
	}
}

func (t *sizeTable) verdict(p *poolReport) {
	plan := p.configured()
	switch {
	case plan.Works && len(p.Problems) > 0:
		t.line(fmt.Sprintf("VERDICT: %s works as far as is known, see the notes above.", plan.Mode))
		return
	case plan.Works:
		t.line(fmt.Sprintf("VERDICT: %s works.", plan.Mode))
		return
	}
	advice := ""
	if len(p.Shapes) > 1 {
		advice = " Give each instance type a pool of its own."
	}
	for _, other := range p.Placeholders {
		if other.Works {
			advice = fmt.Sprintf(" %s would work.", other.Mode)
		}
	}
	t.line(fmt.Sprintf("VERDICT: %s cannot work, see ! above.%s", plan.Mode, advice))
}

func (t *sizeTable) line(text string) { _, _ = t.WriteString(text + "\n") }

// table aligns the columns of the rows.
func (t *sizeTable) table(rows [][]string) {
	w := tabwriter.NewWriter(&t.Builder, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")) // a strings.Builder takes everything
	}
	_ = w.Flush()
}

// wrapped writes text behind the head, with lines of at most width where words allow; the lines that follow are indented.
func (t *sizeTable) wrapped(head, text string) {
	line := head
	indent := strings.Repeat(" ", len(head)-len(strings.TrimLeft(head, " "))+2)
	first := true
	for word := range strings.FieldsSeq(text) {
		switch {
		case first:
			line += word
		case len([]rune(line))+1+len([]rune(word)) > width:
			t.line(line)
			line = indent + word
		default:
			line += " " + word
		}
		first = false
	}
	t.line(line)
}
