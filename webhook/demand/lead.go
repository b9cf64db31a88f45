package demand

import (
	"slices"
	"time"
)

const (
	mostLeads = 12        // lead times that are kept
	ageOfLead = 0.75      // weight of a lead time, of the one after it
	mostLead  = time.Hour // what takes longer waits for something else
)

// Warmed tells how long a placeholder took to get warm.
func (p *Pool) Warmed(lead time.Duration) {
	if lead <= 0 {
		return
	}
	p.Leads = append(p.Leads, number(min(lead, mostLead).Seconds()))
	if len(p.Leads) > mostLeads {
		p.Leads = p.Leads[len(p.Leads)-mostLeads:]
	}
	p.forecast.fitted = false
}

// Underway tells for how long placeholders have been on their way to get warm. Those that take longer than others did show that
// lead times grow, before the first of them is warm.
func (p *Pool) Underway(s *Settings, ages []time.Duration) {
	before, _ := p.LeadTime(s)
	p.underway = slices.Sorted(slices.Values(ages))
	if now, _ := p.LeadTime(s); (now - before).Abs() > before/10 {
		p.forecast.fitted = false
	}
}

// LeadTime is how long placeholders take to get warm on average, the later ones with more weight, and the longest of late.
func (p *Pool) LeadTime(s *Settings) (mean, longest time.Duration) {
	if len(p.Leads) == 0 {
		mean, longest = s.LeadTime, s.LeadTime
	} else {
		sum, weights := 0.0, 0.0
		for _, lead := range p.Leads {
			sum, weights = sum*ageOfLead+float64(lead), weights*ageOfLead+1
		}
		mean, longest = seconds(sum/weights), seconds(float64(slices.Max(p.Leads)))
	}
	for _, age := range p.underway {
		if age = min(age, mostLead); age > mean {
			mean += time.Duration((1 - ageOfLead) * float64(age-mean))
		}
		longest = max(longest, min(age, mostLead))
	}
	return mean, longest
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
