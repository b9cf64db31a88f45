package main

import (
	_ "embed" // the template and its style
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/version"
)

//go:embed plan.tmpl
var planTemplate string

//go:embed plan.css
var planStyle string

// printPlanPage writes one page that needs nothing else: no network, no scripts.
func printPlanPage(out io.Writer, report *planReport) error {
	parsed, err := template.New("plan").Parse(planTemplate)
	if err != nil {
		return err
	}
	page := struct {
		Style   template.CSS
		Version string
		Pools   []planPage
	}{Style: template.CSS(audit.PageStyle + planStyle), Version: version.Get()} //nolint:gosec // our own files
	for i, pool := range report.Pools {
		page.Pools = append(page.Pools, newPlanPage(i, pool, report.nodePrice))
	}
	var text strings.Builder
	if err := parsed.Execute(&text, page); err != nil {
		return err
	}
	_, err = io.WriteString(out, text.String())
	return err
}

// planPage is a pool's part of the page.
type planPage struct {
	*poolPlan

	ID        string
	Promise   string
	LeadTime  time.Duration
	Basis     string
	Zone      string
	Sentence  string
	HasCost   bool
	Rows      []planRow
	Lines     []planLine
	Points    []planPoint
	XTicks    []planTick
	YTicks    []planTick
	YLabel    string
	Week      weekPage
	Weekdays  []string
	HoursRows []hoursRow
}

type planRow struct{ Name, Detail, Warm, Idle, Mean, P95, NodeHours, Cost string }

type planLine struct{ Name, Class, Path string }

type planPoint struct{ Name, Class, X, Y, LabelX, Anchor string }

type planTick struct{ At, Text string }

type hoursRow struct {
	Hour     int
	Replicas []int
}

// policyTitles are what policies are called on the page.
var policyTitles = map[string]string{
	"demand": "sized by demand", "fixed": "a fixed number", "cpa": "CPA", "windows": "two windows", "clairvoyant": "foresight",
}

func newPlanPage(index int, plan *poolPlan, price float64) planPage {
	p := planPage{
		poolPlan: plan, ID: fmt.Sprintf("pool-%d", index+1), Promise: plan.promise(),
		LeadTime: plan.leadTime(), HasCost: price > 0, Basis: plan.basis(), Zone: plan.zone(),
		Week: newWeekPage(plan),
	}
	weeks := plan.Judged.To.Sub(plan.Judged.From).Hours() / (7 * 24)
	for i := range plan.Policies {
		row := &plan.Policies[i]
		p.Rows = append(p.Rows, planRow{
			Name: policyTitles[row.Name], Detail: row.detail(), Warm: fmt.Sprintf("%.1f %%", 100*row.Hits), Idle: fmt.Sprintf("%.2f", row.Idle),
			Mean: fmt.Sprintf("%.0f s", row.MeanWaitSeconds), P95: fmt.Sprintf("%.0f s", row.P95WaitSeconds),
			NodeHours: fmt.Sprintf("%.0f", row.NodeHours/weeks), Cost: fmt.Sprintf("%.0f", row.Cost/weeks),
		})
	}
	had, fixed := &plan.Policies[0], &plan.Policies[1]
	p.Sentence = fmt.Sprintf("Sized by demand, %.1f %% of the starts found a warm place, with %.1f idle nodes on average; the least fixed number that does as well, %d, keeps %.1f idle.",
		100*had.Hits, had.Idle, *fixed.Replicas, fixed.Idle)
	p.addCurves(price)
	for hour := range 24 {
		row := hoursRow{Hour: hour}
		for day := range len(plan.Hours) / 24 {
			row.Replicas = append(row.Replicas, plan.Hours[day*24+hour].Replicas)
		}
		p.HoursRows = append(p.HoursRows, row)
	}
	for day := range len(plan.Hours) / 24 {
		p.Weekdays = append(p.Weekdays, plan.Hours[day*24].Weekday[:3])
	}
	return p
}

// The charts' plot.
const (
	planLeft, planRight = 34.0, 350.0
	planTop, planBottom = 12.0, 178.0
)

// leastHits and mostHits bound the chart: its scale is that of the misses, so that 99 % is as far from 90 % as that from 0.
const leastHits, mostHits = 0.5, 0.999

func hitsAt(hits float64) float64 {
	part := math.Log((1-leastHits)/(1-min(hits, mostHits))) / math.Log((1-leastHits)/(1-mostHits))
	return planLeft + part*(planRight-planLeft)
}

// addCurves draws what hits cost: idle nodes, or their price a week.
func (p *planPage) addCurves(price float64) {
	unit := 1.0
	p.YLabel = "idle nodes"
	if p.HasCost {
		unit, p.YLabel = 7*24*price, "cost of idle nodes a week"
	}
	top := 0.0
	for _, row := range p.Policies {
		top = max(top, row.Idle*unit)
	}
	top = max(top*1.5, unit)
	y := func(idle float64) float64 { return planBottom - min(idle*unit/top, 1)*(planBottom-planTop) }
	for _, curve := range p.curves {
		points := slices.SortedFunc(slices.Values(curve.points), func(a, b costPoint) int {
			if a.hits != b.hits {
				return int(math.Copysign(1, a.hits-b.hits))
			}
			return int(math.Copysign(1, a.idle-b.idle))
		})
		var path strings.Builder
		for _, point := range points {
			if point.hits < leastHits || point.idle*unit > top {
				continue
			}
			command := "L"
			if path.Len() == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", command, hitsAt(point.hits), y(point.idle))
		}
		p.Lines = append(p.Lines, planLine{policyTitles[curve.name], curve.name, path.String()})
	}
	for i := range p.Policies {
		row := &p.Policies[i]
		x, name := hitsAt(max(row.Hits, leastHits)), policyTitles[row.Name]
		if row.Hits < leastHits {
			name += fmt.Sprintf(" (%.0f %%)", 100*row.Hits)
		}
		point := planPoint{Name: name, Class: row.Name, X: fmt.Sprintf("%.1f", x), Y: fmt.Sprintf("%.1f", y(row.Idle)), LabelX: fmt.Sprintf("%.1f", x+8), Anchor: "start"}
		if x > (planLeft+planRight)/2 {
			point.LabelX, point.Anchor = fmt.Sprintf("%.1f", x-8), "end"
		}
		p.Points = append(p.Points, point)
	}
	for _, share := range []float64{0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999} {
		p.XTicks = append(p.XTicks, planTick{fmt.Sprintf("%.1f", hitsAt(share)), fmt.Sprintf("%g", rounded(100*share, 1))})
	}
	p.YTicks = planTicks(top, func(value float64) float64 { return y(value / unit) })
}

// planTicks are some round numbers up to the end.
func planTicks(end float64, at func(float64) float64) []planTick {
	step := math.Pow10(int(math.Floor(math.Log10(max(end, 1e-3)))) - 1)
	for i := 0; end/step > 5; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	var all []planTick
	for n := 0; float64(n)*step <= end; n++ {
		value := float64(n) * step
		all = append(all, planTick{fmt.Sprintf("%.1f", at(value)), fmt.Sprintf("%g", rounded(value, 3))})
	}
	return all
}
