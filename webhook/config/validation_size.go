package config

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What a size may say. Above these numbers something else is meant: a share as a percentage, a misspelt year.
const (
	leastObjective, mostObjective = 0.5, 0.999
	mostPlaceholders              = 5000
	mostStarts                    = 100_000
	mostPrice                     = 1e6
	mostEvents                    = 100
	longestEvent                  = 7 * 24 * time.Hour // given by for; longer ones are days
)

func (v *validator) size(p *field.Path, s *Size) {
	enum(v, p.Child("mode"), s.Mode, Apply, Recommend)
	objective := p.Child("objective")
	switch {
	case s.Cost != nil && s.Objective != 0:
		v.add(field.Forbidden(objective, "the pool has a cost too, which decides by itself; keep one of objective and cost"))
	case s.Cost != nil:
		v.price(p.Child("cost", "waitingHour"), s.Cost.WaitingHour, "what an hour of a user's waiting costs")
		v.price(p.Child("cost", "nodeHour"), s.Cost.NodeHour, "what an hour of a node costs")
	case s.Objective > 1 && s.Objective <= 100:
		v.invalid(objective, s.Objective, fmt.Sprintf("must be a share from %v to %v, not a percentage; write %v", leastObjective, mostObjective, s.Objective/100))
	case !(s.Objective >= leastObjective && s.Objective <= mostObjective):
		v.invalid(objective, s.Objective, fmt.Sprintf("must be a share from %v to %v, for example 0.95: of 100 Workspaces 95 find a warm place", leastObjective, mostObjective))
	}
	v.sizeBounds(p, s)
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "Local" {
		v.invalid(p.Child("timeZone"), s.TimeZone, "must be the name of a time zone, such as Europe/Berlin or UTC")
		return // in which events are read
	}
	v.sizeEvents(p.Child("events"), s)
}

func (v *validator) price(p *field.Path, price float64, what string) {
	if !(price > 0 && price <= mostPrice) {
		v.invalid(p, price, fmt.Sprintf("must be greater than 0 and at most %d: %s", int(mostPrice), what))
	}
}

func (v *validator) sizeBounds(p *field.Path, s *Size) {
	least := int32(0)
	if s.Min != nil {
		least = *s.Min
	}
	if least < 0 || least > mostPlaceholders {
		v.invalid(p.Child("min"), least, fmt.Sprintf("must be from 0 to %d; 0 lets the pool go cold where no one comes", mostPlaceholders))
	}
	largest := p.Child("max")
	switch {
	case s.Max < 0 || s.Max > mostPlaceholders:
		v.invalid(largest, s.Max, fmt.Sprintf("must be from 1 to %d, or left out where mode is %s", mostPlaceholders, Recommend))
	case s.Max == 0 && s.Mode == Apply:
		v.required(largest, fmt.Sprintf("mode %s adds nodes by itself: write how many placeholders the pool may have at most", Apply))
	case s.Max > 0 && s.Max < least:
		v.invalid(largest, s.Max, fmt.Sprintf("is below min, which is %d; raise max or lower min", least))
	}
}

func (v *validator) sizeEvents(p *field.Path, s *Size) {
	if len(s.Events) > mostEvents {
		v.add(field.TooMany(p, len(s.Events), mostEvents))
		return
	}
	zone := s.Location()
	type span struct {
		i        int
		from, to time.Time
	}
	var spans []span
	for i := range s.Events {
		at, e := p.Index(i), &s.Events[i]
		if strings.TrimSpace(e.Name) == "" {
			v.required(at.Child("name"), "name the event, for those who read of it later")
		}
		if e.Starts == nil {
			v.required(at.Child("starts"), "write how many Workspaces start beside the usual ones; 0 where no one comes")
		} else if *e.Starts < 0 || *e.Starts > mostStarts {
			v.invalid(at.Child("starts"), *e.Starts, fmt.Sprintf("must be from 0 to %d", mostStarts))
		}
		if !v.eventTime(at, e, zone) {
			continue
		}
		from, to, _ := e.Span(zone)
		for _, other := range spans {
			if from.Before(other.to) && other.from.Before(to) {
				v.invalid(at, e.Name, fmt.Sprintf("overlaps %s (%s); end one where the other begins, and add up the starts of the time that both have", p.Index(other.i), clip(s.Events[other.i].Name)))
				break
			}
		}
		spans = append(spans, span{i, from, to})
	}
}

// eventTime reports whether an event has a time.
func (v *validator) eventTime(p *field.Path, e *Event, zone *time.Location) bool {
	before := len(v.errs)
	moment, days := e.At != "" || e.For != nil, e.From != "" || e.To != ""
	switch {
	case moment && days:
		v.add(field.Forbidden(p.Child("from"), "the event has a moment too; keep at and for, or from and to"))
	case !moment && !days:
		v.required(p.Child("at"), "write at and for (a moment and how long Workspaces start from then on), or from and to (the first and the last day)")
	case moment:
		v.date(p.Child("at"), e.At, minuteOfDay, "YYYY-MM-DDTHH:MM in the pool's time zone, for example 2027-01-12T09:00", zone)
		if e.For == nil {
			v.required(p.Child("for"), "write how long Workspaces start, for example 30m")
		} else if e.For.Duration <= 0 || e.For.Duration > longestEvent {
			v.invalid(p.Child("for"), e.For.Duration.String(), "must be longer than 0 and at most 168h; whole days are written by from and to")
		}
	default:
		v.date(p.Child("from"), e.From, time.DateOnly, "the first day, as YYYY-MM-DD, for example 2026-12-24", zone)
		v.date(p.Child("to"), e.To, time.DateOnly, "the last day, as YYYY-MM-DD, for example 2027-01-02", zone)
		if from, to, ok := e.Span(zone); ok && !from.Before(to) {
			v.invalid(p.Child("to"), e.To, fmt.Sprintf("is before the first day, %s", e.From))
		}
	}
	return len(v.errs) == before
}

func (v *validator) date(p *field.Path, value, layout, want string, zone *time.Location) {
	if _, err := time.ParseInLocation(layout, value, zone); err != nil {
		v.invalid(p, value, "must be "+want)
	}
}
