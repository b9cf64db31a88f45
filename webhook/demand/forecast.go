package demand

import (
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

// forecast is the rates of a week. Those up to quiet are so few that no placeholder is kept for them; seen is how many hours
// were watched.
type forecast struct {
	fitted bool
	rates  [hoursOfWeek]rate
	quiet  float64
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
	f.quiet = f.quietest((1 - s.Objective) * quietShare)
	return f
}

// quietest is the highest rate of those hours that together hold no more than a share of the starts.
func (f *forecast) quietest(share float64) float64 {
	var means []float64
	all := 0.0
	for _, r := range f.rates {
		means = append(means, r.mean())
		all += r.mean()
	}
	slices.Sort(means)
	sum, quiet := 0.0, 0.0
	for _, mean := range means {
		if sum += mean; sum > share*all {
			break
		}
		quiet = mean
	}
	return quiet
}

// orders are the nodes on order at a time, for the formula: the starts of a lead time.
func (p *Pool) orders(s *Settings, at time.Time, lead time.Duration) (orders capacity.Orders, quiet bool) {
	f := p.fit(s)
	event := s.event(at)
	if event != nil && event.Starts == 0 {
		return orders, true
	}
	r := f.rates[s.hourOf(at)]
	now := usual + float64(p.Recent)
	of := max(now/(usual+float64(p.Expected)), leastOf)
	if r.starts > 0 {
		orders.Mean = r.mean() * of * lead.Hours()
		orders.Variance = orders.Mean + orders.Mean*orders.Mean*(1/r.starts+1/now)
		quiet = r.mean()*of <= f.quiet
	} else {
		quiet = true
	}
	if event != nil {
		extra := float64(event.Starts) * min(1, lead.Hours()/event.To.Sub(event.From).Hours())
		orders.Mean += extra
		orders.Variance += extra
		quiet = false
	}
	return orders, quiet
}

// Hours are the placeholders to keep in each hour of the week, from Sunday 0 o'clock on, where starts come as in other weeks.
func (p *Pool) Hours(s *Settings) [hoursOfWeek]int {
	var places [hoursOfWeek]int
	lead, _ := p.LeadTime(s)
	f := p.fit(s)
	for i, r := range f.rates {
		orders := capacity.Orders{Mean: r.mean() * lead.Hours()}
		if r.starts > 0 {
			orders.Variance = orders.Mean + orders.Mean*orders.Mean/r.starts
		}
		places[i] = s.bounded(p.places(s, orders, r.mean() <= f.quiet))
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
