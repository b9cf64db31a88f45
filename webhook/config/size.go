package config

import (
	"slices"
	"time"
	_ "time/tzdata" // the image has no time zones

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SizeMode says what becomes of the size that warmpool finds.
type SizeMode string

// Apply writes the size to the placeholder Deployments, Recommend only reports it.
const (
	Apply     SizeMode = "Apply"
	Recommend SizeMode = "Recommend"
)

// Size has warmpool find by demand how many placeholders the pool keeps.
type Size struct {
	// Mode is Recommend (default), which only reports the size, or Apply: the scale of the pool's placeholder Deployments is set.
	Mode SizeMode `json:"mode,omitempty"`
	// Objective is the share of Workspaces that is to find a warm place, from 0.5 to 0.999. Default 0.95, unless there is a cost.
	Objective float64 `json:"objective,omitempty"`
	// Cost finds the size that costs least, in place of an objective.
	Cost *Cost `json:"cost,omitempty"`
	// Min is the least number of placeholders, all Deployments of the pool together; 0 lets the pool go cold where no one comes.
	// Default 1.
	Min *int32 `json:"min,omitempty"`
	// Max is the largest number of placeholders. Required for Apply; 0: no bound.
	Max int32 `json:"max,omitempty"`
	// TimeZone is where the hours of the week are counted, such as Europe/Berlin. Default UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Events are what no history can know; they must not overlap.
	Events []Event `json:"events,omitempty"`
}

// SizesPools reports whether warmpool finds the size of some pool.
func (c *WarmPoolConfiguration) SizesPools() bool {
	return slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.Size != nil })
}

// Cost is what waiting and idle nodes cost, in one currency.
type Cost struct {
	// WaitingHour is the price of an hour that a user waits for a Workspace.
	WaitingHour float64 `json:"waitingHour"`
	// NodeHour is the price of an hour of a node that no one uses.
	NodeHour float64 `json:"nodeHour"`
}

// Event is a time at which Workspaces start otherwise than in other weeks: at a time and for a duration, or whole days.
type Event struct {
	// Name of the event, for Events, logs and reports.
	Name string `json:"name"`
	// At is the beginning, as YYYY-MM-DDTHH:MM in the pool's timeZone; For how long Workspaces start from then on.
	At  string           `json:"at,omitempty"`
	For *metav1.Duration `json:"for,omitempty"`
	// From and To are the first and the last day, as YYYY-MM-DD.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Starts is how many Workspaces start beside the usual ones, spread over the time; 0: no one comes.
	Starts *int32 `json:"starts"`
}

// minuteOfDay is the form of Event.At.
const minuteOfDay = "2006-01-02T15:04"

// Location is the time zone; UTC where there is none, or none that is known, which Validate refuses.
func (s *Size) Location() *time.Location {
	if zone, err := time.LoadLocation(s.TimeZone); err == nil {
		return zone
	}
	return time.UTC
}

// Span is the time of the event, to not included; ok is false for what Validate refuses.
func (e *Event) Span(zone *time.Location) (from, to time.Time, ok bool) {
	if e.At != "" && e.For != nil {
		from, err := time.ParseInLocation(minuteOfDay, e.At, zone)
		return from, from.Add(e.For.Duration), err == nil
	}
	from, errFrom := time.ParseInLocation(time.DateOnly, e.From, zone)
	to, errTo := time.ParseInLocation(time.DateOnly, e.To, zone)
	return from, to.AddDate(0, 0, 1), errFrom == nil && errTo == nil
}
