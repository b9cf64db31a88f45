package demand

import (
	"time"

	"warmpool.sh/webhook/config"
)

// Settings are what is asked of a pool.
type Settings struct {
	// Objective is the share of starts that is to find a place. Where it is 0, prices decide: of an hour that a Workspace waits,
	// and of an hour of a node that no one uses.
	Objective             float64
	WaitingHour, IdleHour float64
	Min, Max              int // Max 0: no bound
	// Places is how many Workspaces a node takes, the last one in its placeholder's place; 0 stands for 1.
	Places int
	// LeadTime is how long a placeholder takes to get warm, as long as none has told.
	LeadTime time.Duration
	// ConsolidateAfter is how long Karpenter keeps an empty node.
	ConsolidateAfter time.Duration
	// Zone is where the hours of the week are counted; nil stands for UTC.
	Zone *time.Location
	// Events are what no history can know.
	Events []Event
}

// SettingsOf is what the configuration asks of a pool. A pool whose size somebody else sets has nothing asked of it (nil): its
// starts are counted all the same. Places, lead time and ConsolidateAfter are the cluster's, not the configuration's.
func SettingsOf(size *config.Size) *Settings {
	if size == nil {
		return &Settings{}
	}
	s := &Settings{Objective: size.Objective, Max: int(size.Max), Zone: size.Location()}
	if size.Min != nil {
		s.Min = int(*size.Min)
	}
	if size.Cost != nil {
		s.WaitingHour, s.IdleHour = size.Cost.WaitingHour, size.Cost.NodeHour
	}
	for i := range size.Events {
		e := &size.Events[i]
		if from, to, ok := e.Span(s.Zone); ok && e.Starts != nil {
			s.Events = append(s.Events, Event{Name: e.Name, From: from, To: to, Starts: int(*e.Starts)})
		}
	}
	return s
}

// Event is a time at which so many Workspaces start beside the usual ones; with 0 starts, no one is expected.
type Event struct {
	Name     string
	From, To time.Time
	Starts   int
}

// shortestHold is the least time after which a pool shrinks.
const shortestHold = 15 * time.Minute

func (s *Settings) hold() time.Duration { return max(s.ConsolidateAfter, shortestHold) }

// hourOf is the hour of the week, from Sunday 0 o'clock on.
func (s *Settings) hourOf(t time.Time) int {
	if s.Zone == nil {
		t = t.UTC()
	} else {
		t = t.In(s.Zone)
	}
	return int(t.Weekday())*24 + t.Hour()
}

// event is the one at a time; nil: none.
func (s *Settings) event(at time.Time) *Event {
	for i := range s.Events {
		if e := &s.Events[i]; !at.Before(e.From) && at.Before(e.To) {
			return e
		}
	}
	return nil
}

// At is the event at a time; nil: none.
func (s *Settings) At(at time.Time) *Event { return s.event(at) }

// bounded keeps a number of placeholders within Min and Max.
func (s *Settings) bounded(places int) int {
	places = max(places, s.Min)
	if s.Max > 0 {
		places = min(places, s.Max)
	}
	return places
}
