package audit

import (
	"fmt"
	"strings"

	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/poolview"
)

// curvePage is a CPA's curve as a chart. Places are in units of the chart.
type curvePage struct {
	*poolview.Curve
	Sentence       string
	Path           string // of the curve
	Own            string // of the line on which every replica has a node
	XTicks, YTicks []tick
	Min, Max       string // heights; empty: beyond the chart
	MinIs, MaxIs   int
	X, Y           string // the point where it settles; empty: beyond the chart
	LabelX, LabelY string
	Anchor         string
}

type tick struct {
	At    string
	Value int
}

// The chart's plot.
const (
	plotLeft, plotRight = 34.0, 350.0
	plotTop, plotBottom = 12.0, 158.0
)

// chart places nodes and replicas.
type chart struct{ nodes, replicas float64 }

func (c chart) x(nodes float64) float64 { return plotLeft + nodes/c.nodes*(plotRight-plotLeft) }
func (c chart) y(replicas float64) float64 {
	return plotBottom - replicas/c.replicas*(plotBottom-plotTop)
}

func newCurvePage(curve *poolview.Curve) curvePage {
	p := curvePage{Curve: curve, MinIs: curve.Min, MaxIs: curve.Max}
	if curve.Problem != "" || len(curve.Points) == 0 {
		return p
	}
	p.Sentence = sentence(curve)
	top := curve.Settled
	for _, point := range curve.Points {
		top = max(top, point.Replicas)
	}
	if curve.Max > top && curve.Max <= 3*top {
		top = curve.Max
	}
	c := chart{nodes: float64(curve.Points[len(curve.Points)-1].Nodes), replicas: float64(top) * 1.15}
	var path strings.Builder
	for i, point := range curve.Points {
		if i == 0 {
			fmt.Fprintf(&path, "M%.1f %.1f", c.x(float64(point.Nodes)), c.y(float64(point.Replicas)))
			continue
		}
		fmt.Fprintf(&path, "H%.1fV%.1f", c.x(float64(point.Nodes)), c.y(float64(point.Replicas)))
	}
	p.Path = path.String()
	p.addOwn(c)
	p.XTicks, p.YTicks = ticks(c.nodes, c.x), ticks(c.replicas, c.y)
	p.Min, p.Max = c.height(curve.Min), c.height(curve.Max)
	if settled := float64(curve.Settled); settled > 0 {
		p.mark(c, float64(curve.Others), settled)
	}
	return p
}

// addOwn draws which replicas have a node each beside the others: where CPA counts those nodes, it settles where the
// curve meets that line.
func (p *curvePage) addOwn(c chart) {
	others := float64(p.Others)
	if !p.Feedback {
		p.Own = fmt.Sprintf("M%.1f %.1fV%.1f", c.x(others), plotBottom, plotTop)
		return
	}
	end := min(c.nodes, others+c.replicas)
	p.Own = fmt.Sprintf("M%.1f %.1fL%.1f %.1f", c.x(others), c.y(0), c.x(end), c.y(end-others))
}

func (p *curvePage) mark(c chart, others, settled float64) {
	nodes := others
	if p.Feedback {
		nodes += settled
	}
	if nodes > c.nodes {
		return
	}
	x, y := c.x(nodes), c.y(settled)
	p.X, p.Y = fmt.Sprintf("%.1f", x), fmt.Sprintf("%.1f", y)
	// Below to the right and above to the left neither line runs.
	labelX, labelY, anchor := x+9, y+17, "start"
	if x > (plotLeft+plotRight)/2 || labelY > plotBottom-3 {
		labelX, labelY, anchor = x-9, y-8, "end"
	}
	if labelX < plotLeft+70 && anchor == "end" {
		labelX, anchor = x+9, "start"
	}
	p.LabelX, p.LabelY, p.Anchor = fmt.Sprintf("%.1f", labelX), fmt.Sprintf("%.1f", labelY), anchor
}

// height is where a limit is drawn; empty where there is none or the chart ends below it.
func (c chart) height(limit int) string {
	if limit == 0 || float64(limit) > c.replicas {
		return ""
	}
	return fmt.Sprintf("%.1f", c.y(float64(limit)))
}

// ticks are some round numbers up to the end.
func ticks(end float64, at func(float64) float64) []tick {
	step := 1
	for i := 0; float64(step)*5 < end; i++ {
		step = []int{2, 5, 10}[i%3] * pow10(i/3)
	}
	var all []tick
	for value := 0; float64(value) <= end; value += step {
		all = append(all, tick{fmt.Sprintf("%.1f", at(float64(value))), value})
	}
	return all
}

func pow10(n int) int {
	power := 1
	for range n {
		power *= 10
	}
	return power
}

// sentence says what the chart shows.
func sentence(c *poolview.Curve) string {
	beside := "Beside " + phrase.Count(c.Others, "node") + " without placeholder "
	switch {
	case c.Runaway && c.Settled == 0:
		return beside + "the count never settles: each warm node calls for another, and there is no max."
	case c.Runaway:
		return fmt.Sprintf("%sthe count runs up to %d, where max stops it: each warm node calls for another.", beside, c.Settled)
	case !c.Feedback:
		return fmt.Sprintf("At %s it sets %s. The nodes of the placeholders themselves do not change that.", phrase.Count(c.Others, "node"), phrase.Count(c.Settled, "replica"))
	default:
		return fmt.Sprintf("%sthe count settles at %s, with the warm nodes counted too.", beside, phrase.Count(c.Settled, "replica"))
	}
}
