package demand

import (
	"cmp"
	"math"
	"slices"
	"time"

	"warmpool.sh/webhook/capacity"
)

// rate is the rate of starts in an hour of the week: a Gamma distribution.
type rate struct{ starts, hours float64 }

func (r rate) mean() float64 {
	if r.hours == 0 {
		return 0
	}
	return r.starts / r.hours
}

// forecast is the rates of a week. A placeholder is kept as long as it finds worth starts in each hour that it is idle; seen is
// how many hours were watched.
type forecast struct {
	fitted bool
	rates  [hoursOfWeek]rate
	worth  float64
	seen   float64
}

// unseen is how many hours of the average rate are added to those seen, so that nothing is divided by none.
const unseen = 0.1

// fit makes the forecast from the counts, once an hour.
func (p *Pool) fit(s *Settings) *forecast {
	f := &p.forecast
	if f.fitted {
		return f
	}
	*f = forecast{fitted: true}
	var days [7]rate
	var times [24]rate
	all := 0.0
	for i := range hoursOfWeek {
		starts, seen := float64(p.Starts[i]), float64(p.Seen[i])
		days[i/24].starts += starts
		days[i/24].hours += seen
		times[i%24].starts += starts
		times[i%24].hours += seen
		all += starts
		f.seen += seen
	}
	if all == 0 {
		return f
	}
	average := all / f.seen
	usually := func(r rate) float64 { return (r.starts + unseen*average) / (r.hours + unseen) }
	for i := range hoursOfWeek {
		prior := usually(days[i/24]) * usually(times[i%24]) / average
		f.rates[i] = rate{trust*prior + float64(p.Starts[i]), trust + float64(p.Seen[i])}
	}
	if s.Objective > 0 {
		lead, _ := p.LeadTime(s)
		f.worth = f.worthOf(s.Objective, lead)
	}
	return f
}

// worthOf is how many starts a placeholder must find in each idle hour, so that over the week the objective's share finds one. It is
// one number for all hours, and so the share is had with the least of idle nodes: hours like each other keep as many, and one in
// which hardly anybody comes keeps none.
func (f *forecast) worthOf(objective float64, lead time.Duration) float64 {
	rates := f.rates
	slices.SortFunc(rates[:], func(a, b rate) int { return cmp.Compare(a.mean(), b.mean()) })
	share := func(worth float64) float64 {
		hits, all := 0.0, 0.0
		for i := len(rates) - 1 - each/2; i >= 0; i -= each {
			_, part := rates[i].orders(lead, 1, usual).PlacesByWorth(rates[i].mean(), worth)
			hits += rates[i].mean() * part
			all += rates[i].mean()
		}
		return hits / all
	}
	least, most := math.Log(leastWorth), math.Log(mostWorth)
	for range 12 {
		if middle := (least + most) / 2; share(math.Exp(middle)) >= objective {
			least = middle
		} else {
			most = middle
		}
	}
	return math.Exp(least)
}

// Between these worth is looked for, with one of each so many hours when sorted by their rates.
const (
	leastWorth, mostWorth = 1e-5, 1e4
	each                  = 7
)

// orders are the nodes on order at a time, for the formula: the starts of a lead time.
func (p *Pool) orders(s *Settings, at time.Time, lead time.Duration) capacity.Orders {
	f := p.fit(s)
	event := s.event(at)
	if event != nil && event.Starts == 0 {
		return capacity.Orders{}
	}
	now := usual + float64(p.Recent)
	orders := f.rates[s.hourOf(at)].orders(lead, max(now/(usual+float64(p.Expected)), leastOf), now)
	if event != nil {
		extra := float64(event.Starts) * min(1, lead.Hours()/event.To.Sub(event.From).Hours())
		orders.Mean += extra
		orders.Variance += extra
	}
	return orders
}

// orders are the starts of a lead time. Of late they came with of times the rate, as so many starts tell.
func (r rate) orders(lead time.Duration, of, told float64) capacity.Orders {
	if r.starts == 0 {
		return capacity.Orders{}
	}
	mean := r.mean() * of * lead.Hours()
	return capacity.Orders{Mean: mean, Variance: clumps*mean + mean*mean*(1/r.starts+1/told)}
}

// Hours are the placeholders to keep in each hour of the week, from Sunday 0 o'clock on, where starts come as in other weeks.
func (p *Pool) Hours(s *Settings) [hoursOfWeek]int {
	var places [hoursOfWeek]int
	lead, _ := p.LeadTime(s)
	for i, r := range p.fit(s).rates {
		places[i] = s.bounded(p.places(s, r.orders(lead, 1, usual), lead))
	}
	return places
}

// Rates are the starts an hour that are expected in each hour of the week.
func (p *Pool) Rates(s *Settings) [hoursOfWeek]float64 {
	var means [hoursOfWeek]float64
	for i, r := range p.fit(s).rates {
		means[i] = r.mean()
	}
	return means
}
