package capacity

import "time"

// Policy decides how many placeholders a pool keeps. A replay calls it in the order of time.
type Policy interface {
	// Keep is how many placeholders to keep from now on, in a pool that has so many nodes.
	Keep(now time.Time, nodes int) int
	// Started tells of a start, and whether it found a place.
	Started(now time.Time, found bool)
}

// blind is a Policy that no start changes.
type blind struct{}

// Started does nothing.
func (blind) Started(time.Time, bool) {}

// Fixed keeps the same number always.
func Fixed(places int) Policy { return ByTime(func(time.Time) int { return places }) }

// ByTime keeps what a plan says that was made before.
func ByTime(plan func(now time.Time) int) Policy { return byTime{plan: plan} }

type byTime struct {
	blind
	plan func(time.Time) int
}

// Keep asks the plan.
func (p byTime) Keep(now time.Time, _ int) int { return p.plan(now) }

// ByNodes counts nodes, as the Cluster Proportional Autoscaler (CPA) does.
func ByNodes(replicas func(nodes int) int) Policy { return byNodes{replicas: replicas} }

type byNodes struct {
	blind
	replicas func(int) int
}

// Keep goes by the nodes.
func (p byNodes) Keep(_ time.Time, nodes int) int { return p.replicas(nodes) }

// Windows keeps High on weekdays between two hours of the day, and Low at all other times.
type Windows struct {
	From, To  int // hours of the day, To not included
	High, Low int
	// Zone is where hours are counted.
	Zone *time.Location
}

// Keep goes by the clock.
func (w Windows) Keep(now time.Time, _ int) int {
	if w.In(now) {
		return w.High
	}
	return w.Low
}

// Started does nothing.
func (Windows) Started(time.Time, bool) {}

// In tells whether a time is in the window of High.
func (w Windows) In(now time.Time) bool {
	local := now.In(w.Zone)
	weekend := local.Weekday() == time.Saturday || local.Weekday() == time.Sunday
	return !weekend && local.Hour() >= w.From && local.Hour() < w.To
}
