package audit

import (
	_ "embed" // the template and its style
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/poolview"
)

//go:embed html.tmpl
var pageTemplate string

// PageStyle is the style of warmpool's pages.
//
//go:embed html.css
var PageStyle string

// page is what the template writes down: texts, and numbers as texts.
type page struct {
	Style         template.CSS
	Subject       string
	Configuration string
	Time, Version string
	Summary       Summary
	Text          string
	Notes         list
	Pools         []poolPage
	Findings      []findingPage
	More          []moreFindings
}

// list is texts of which only some are shown.
type list struct {
	Shown []string
	More  int
}

func shorten(texts []string, most int) list {
	if len(texts) <= most {
		return list{Shown: texts}
	}
	return list{Shown: texts[:most], More: len(texts) - most}
}

// mostNotes and mostNames bound what is listed in full.
const (
	mostNotes = 30
	mostNames = 30
)

// printHTML writes one page that needs nothing else: no network, no scripts.
func printHTML(out io.Writer, r *Report) error {
	parsed, err := template.New("page").Funcs(template.FuncMap{"counted": phrase.Count, "join": strings.Join}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	p := page{
		Style:   template.CSS(PageStyle), //nolint:gosec // our own file
		Subject: r.Subject, Configuration: r.Configuration, Version: r.Version, Time: r.Time.UTC().Format(time.RFC3339),
		Summary: r.Summary, Text: r.Summary.text(), Notes: shorten(r.Notes, mostNotes),
	}
	p.Findings, p.More = r.findingPages()
	for _, view := range r.Views {
		p.Pools = append(p.Pools, r.poolPage(view, p.Findings))
	}
	var page strings.Builder
	if err := parsed.Execute(&page, p); err != nil {
		return err
	}
	_, err = io.WriteString(out, page.String())
	return err
}

// findingPage is a finding with its place on the page.
type findingPage struct {
	*Finding
	ID       string
	Object   string
	Message  string
	Requires string // what the rule asks for
	Where    string
	HasPool  bool // the page shows its pool
}

// moreFindings counts findings that are left out.
type moreFindings struct {
	Rule  string
	Count int
}

// mostOfARule bounds the findings of one rule that are shown, and mostOfAMessage their texts: a rule may fire for each of
// thousands of nodes, and the page is to stay one that opens at once.
const (
	mostOfARule    = 20
	mostOfAMessage = 1500
)

// findingPages are the findings in their order, with at most so many of each rule.
func (r *Report) findingPages() (shown []findingPage, more []moreFindings) {
	requires := map[string]string{}
	for _, rule := range r.Rules {
		requires[rule.ID] = rule.Summary
	}
	pools := map[string]bool{}
	for _, view := range r.Views {
		pools[view.Pool.Name] = true
	}
	seen := map[string]int{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if seen[f.Rule]++; seen[f.Rule] > mostOfARule {
			if seen[f.Rule] == mostOfARule+1 {
				more = append(more, moreFindings{Rule: f.Rule})
			}
			continue
		}
		where := ""
		if f.Place.File != "" {
			where = f.Place.text()
		}
		shown = append(shown, findingPage{
			Finding: f, ID: fmt.Sprintf("finding-%d", len(shown)+1), Object: printable(f.object()), Requires: requires[f.Rule],
			Message: printable(phrase.Cut(f.Message, mostOfAMessage)), Where: printable(where), HasPool: pools[f.Pool],
		})
	}
	for i := range more {
		more[i].Count = seen[more[i].Rule] - mostOfARule
	}
	return shown, more
}

// poolPage is a pool's part of the page.
type poolPage struct {
	*poolview.View
	ID             string
	Errors         int
	Warnings       int
	Infos          int
	Worst          string // the severity of its worst finding; empty: it has none
	Findings       []findingPage
	MoreFindings   int
	NodeCount      int
	States         []stateCount
	Groups         []nodePage
	MoreNodes      int
	MoreGroups     int
	Scale          string // why nodes are drawn to scale of the resource
	HasThreshold   bool
	UnknownShown   list
	Curves         []curvePage
	HasPlaceholder bool
}

// stateCount is how many nodes are in a state.
type stateCount struct {
	State poolview.NodeState
	Class string
	Count int
}

// mostOfAPool bounds the links to a pool's findings.
const mostOfAPool = 12

func (r *Report) poolPage(view *poolview.View, findings []findingPage) poolPage {
	p := poolPage{
		View: view, ID: "pool-" + view.Pool.Name, Scale: scale(view),
		UnknownShown: shorten(view.Unknown, mostNotes),
	}
	for i := range r.Findings {
		if r.Findings[i].Pool != view.Pool.Name {
			continue
		}
		switch r.Findings[i].Severity {
		case policy.SeverityError:
			p.Errors++
		case policy.SeverityWarning:
			p.Warnings++
		case policy.SeverityInfo:
			p.Infos++
		}
		if p.Worst == "" {
			p.Worst = string(r.Findings[i].Severity)
		}
	}
	for _, f := range findings {
		if f.Pool == view.Pool.Name && len(p.Findings) < mostOfAPool {
			p.Findings = append(p.Findings, f)
		}
	}
	p.MoreFindings = p.Errors + p.Warnings + p.Infos - len(p.Findings)
	p.addNodes()
	for i := range view.Curves {
		p.Curves = append(p.Curves, newCurvePage(&view.Curves[i]))
	}
	return p
}

// scale says why nodes are drawn to scale of the resource.
func scale(view *poolview.View) string {
	name, asks := view.Resource, "a placeholder and a default Workspace together ask"
	if view.Pool.Sizing.Mode == config.Exclusive {
		asks = "a default Workspace asks"
	}
	if view.Available.Sign() <= 0 {
		return "nothing tells which resource runs out first"
	}
	return fmt.Sprintf("it runs out first, as %s for %s of the %s that the smallest node has", asks, amount(name, view.Demand), amount(name, view.Available))
}
