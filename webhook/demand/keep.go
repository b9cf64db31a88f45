package demand

import (
	"math"
	"time"

	"warmpool.sh/webhook/capacity"
)

// Keep is how many placeholders to keep from now on. It grows a lead time and a tenth ahead of the hour that needs more, and
// shrinks once less was enough for a while.
func (p *Pool) Keep(s *Settings, now time.Time) int {
	p.advance(s, now)
	lead, longest := p.LeadTime(s)
	ahead := now.Add(longest + longest/10)
	wanted := 0
	for at := now; ; at = at.Add(time.Hour) {
		if at.After(ahead) {
			at = ahead
		}
		wanted = max(wanted, p.places(s, p.orders(s, at, lead), lead))
		if !at.Before(ahead) {
			break
		}
	}
	p.capped = s.Max > 0 && wanted >= s.Max
	places := p.held(s, now, s.bounded(wanted))
	p.promise = p.orders(s, now, lead).Hits(places * max(s.Places, 1))
	return places
}

// held is the most of what was to be kept of late.
func (p *Pool) held(s *Settings, now time.Time, places int) int {
	for len(p.kept) > 0 && p.kept[len(p.kept)-1].places <= places {
		p.kept = p.kept[:len(p.kept)-1]
	}
	p.kept = append(p.kept, kept{now, places})
	for now.Sub(p.kept[0].at) > s.hold() {
		p.kept = p.kept[1:]
	}
	return s.bounded(p.kept[0].places)
}

// places is what the formula asks for. A node that takes several Workspaces has as many places, but one of them may be nearly
// full; how much that costs, the starts will tell.
func (p *Pool) places(s *Settings, orders capacity.Orders, lead time.Duration) int {
	places := 0
	if s.Objective > 0 {
		places, _ = orders.PlacesByWorth(orders.Mean/lead.Hours(), p.fit(s).worth*math.Exp(-float64(p.Shift)))
	} else {
		places = orders.PlacesByPrice(s.WaitingHour, s.IdleHour)
	}
	if each := max(s.Places, 1); places > 0 {
		places = 1 + (places-1+each-1)/each
	}
	return places
}

// Policy has a replay keep what the pool says.
type Policy struct {
	*Pool

	Settings *Settings
}

// Keep is the pool's.
func (p Policy) Keep(now time.Time, _ int) int { return p.Pool.Keep(p.Settings, now) }

// Started is the pool's.
func (p Policy) Started(now time.Time, found bool) { p.Pool.Started(p.Settings, now, found) }

// Resume tells how many placeholders a pool has of which no decision is known: it shrinks no faster for that.
func (p *Pool) Resume(now time.Time, places int) {
	if len(p.kept) == 0 {
		p.kept = []kept{{now, places}}
	}
}

// Withheld tells that the pool has not what the last decision asks for: starts that find no place then are no reason to ask for more.
func (p *Pool) Withheld() { p.capped = true }

// Learning tells that the pool was watched for too short a time to say that less is enough.
func (p *Pool) Learning(s *Settings) bool { return p.fit(s).seen < foundation }

// Hits are the shares of the starts of late that were promised a place, and that had one; ok is false before the first.
func (p *Pool) Hits() (promised, had float64, ok bool) {
	if p.Counted == 0 {
		return 0, 0, false
	}
	return float64(p.Promised / p.Counted), float64(p.Had / p.Counted), true
}

// Outlook is how many starts an hour other weeks let expect now, and Promise the chance of a place that the last decision
// promises the next one.
func (p *Pool) Outlook(s *Settings, now time.Time) (starts, promise float64) {
	return p.fit(s).rates[s.hourOf(now)].mean(), p.promise
}
