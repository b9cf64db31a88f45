package demand

import (
	"math"
	"time"
)

// zone is where the hours of the week are counted.
func (s *Settings) zone() *time.Location {
	if s.Zone == nil {
		return time.UTC
	}
	return s.Zone
}

// countIn has the hours of the week counted in a zone from now on; what was counted in another one moves by as many hours as lie
// between the two.
func (p *Pool) countIn(zone *time.Location, now time.Time) {
	before := p.Zone
	if p.Zone = zone.String(); before == "" || before == p.Zone {
		return
	}
	was, err := time.LoadLocation(before)
	if err != nil {
		return
	}
	_, from := now.In(was).Zone()
	_, to := now.In(zone).Zone()
	hours := int(math.Round(float64(to-from) / 3600))
	starts, seen := p.Starts, p.Seen
	at := func(hour int) int { return ((hour+hours)%hoursOfWeek + hoursOfWeek) % hoursOfWeek }
	for i := range hoursOfWeek {
		p.Starts[at(i)], p.Seen[at(i)] = starts[i], seen[i]
	}
	p.Hour.Of = at(p.Hour.Of)
	p.forecast.fitted = false
}
