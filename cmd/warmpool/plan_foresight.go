package main

import (
	"math"
	"sort"
	"time"

	"warmpool.sh/webhook/capacity"
)

// foresee replays what knows the rate of the two hours around each time, and keeps what gives a share of hits by the formula.
func (p *planner) foresee(share float64) *capacity.Result {
	rate := func(at time.Time) float64 {
		after := func(limit time.Time) int {
			return sort.Search(len(p.starts), func(i int) bool { return p.starts[i].At.After(limit) })
		}
		return float64(after(at.Add(time.Hour))-after(at.Add(-time.Hour))) / 2
	}
	single := capacity.Clairvoyant(rate, p.leadTime, share)
	return p.replay(capacity.ByTime(func(now time.Time) int {
		places := single.Keep(now, 0)
		if places > 0 {
			places = 1 + (places-1+p.places-1)/p.places
		}
		return max(places, p.least)
	}))
}

// clairvoyant asks for as much as gives the hits. Where Workspaces end, their nodes serve others, and less is enough.
func (p *planner) clairvoyant(hits float64) *capacity.Result {
	best := p.foresee(mostShare)
	for low, high := 0.0, mostShare; high-low > (1-low)/8; {
		share := 1 - math.Sqrt((1-low)*(1-high))
		if r := p.foresee(share); r.Hits() >= hits {
			best, high = r, share
		} else {
			low = share
		}
	}
	return best
}

// mostShare bounds what foresight asks for.
const mostShare = 0.9999

// planCurve is what a policy costs for more or fewer hits.
type planCurve struct {
	name   string
	points []costPoint
}

type costPoint struct{ hits, idle float64 }

// curves are those of the policies that can be asked for more.
func (p *planner) curves(fixed int) []planCurve {
	learns, always, foresight := planCurve{name: "demand"}, planCurve{name: "fixed"}, planCurve{name: "clairvoyant"}
	add := func(c *planCurve, r *capacity.Result) {
		c.points = append(c.points, costPoint{r.Hits(), r.Idle})
	}
	for _, share := range []float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995} {
		add(&learns, p.learn(share))
		add(&foresight, p.foresee(share))
	}
	for places := range fixed + 1 + max(2, fixed/2) {
		add(&always, p.replay(capacity.Fixed(places)))
	}
	return []planCurve{always, learns, foresight}
}
