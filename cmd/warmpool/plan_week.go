package main

import (
	"fmt"
	"slices"
	"strings"
)

// weekPage is the week as a chart: the starts that are expected above, the placeholders to keep below.
type weekPage struct {
	Starts, Size           string // paths
	StartsTicks, SizeTicks []planTick
	Days                   []planTick
	Sentence               string
}

// Heights of the two parts.
const (
	weekStartsTop, weekStartsBottom = 16.0, 86.0
	weekSizeTop, weekSizeBottom     = 116.0, 178.0
)

func newWeekPage(plan *poolPlan) weekPage {
	hours := len(plan.Hours)
	x := func(hour int) float64 { return planLeft + float64(hour)/float64(hours)*(planRight-planLeft) }
	mostStarts, mostSize, leastSize := 0.1, 1.0, float64(plan.Hours[0].Replicas)
	busiest := slices.Index(plan.rates, slices.Max(plan.rates))
	for i, hour := range plan.Hours {
		mostStarts, mostSize, leastSize = max(mostStarts, plan.rates[i]), max(mostSize, float64(hour.Replicas)), min(leastSize, float64(hour.Replicas))
	}
	starts := func(rate float64) float64 {
		return weekStartsBottom - rate/mostStarts*(weekStartsBottom-weekStartsTop)
	}
	size := func(replicas float64) float64 {
		return weekSizeBottom - replicas/mostSize*(weekSizeBottom-weekSizeTop)
	}
	var area, line strings.Builder
	fmt.Fprintf(&area, "M%.1f %.1f", planLeft, weekStartsBottom)
	fmt.Fprintf(&line, "M%.1f %.1f", planLeft, size(float64(plan.Hours[0].Replicas)))
	for i, hour := range plan.Hours {
		fmt.Fprintf(&area, "V%.1fH%.1f", starts(plan.rates[i]), x(i+1))
		fmt.Fprintf(&line, "V%.1fH%.1f", size(float64(hour.Replicas)), x(i+1))
	}
	fmt.Fprintf(&area, "V%.1fZ", weekStartsBottom)
	p := weekPage{
		Starts: area.String(), Size: line.String(), StartsTicks: planTicks(mostStarts, starts), SizeTicks: wholeTicks(mostSize, size),
		Sentence: fmt.Sprintf("Most starts come on %s from %d o'clock: %.1f an hour. Between %.0f and %.0f placeholders are kept.",
			plan.Hours[busiest].Weekday, plan.Hours[busiest].Hour, plan.rates[busiest], leastSize, mostSize),
	}
	for i := 0; i < hours; i += 24 {
		p.Days = append(p.Days, planTick{fmt.Sprintf("%.1f", x(i+12)), plan.Hours[i].Weekday[:3]})
	}
	return p
}

// wholeTicks are those for what is counted.
func wholeTicks(end float64, at func(float64) float64) []planTick {
	return slices.DeleteFunc(planTicks(end, at), func(t planTick) bool { return strings.Contains(t.Text, ".") })
}
