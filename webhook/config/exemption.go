package config

import "time"

// end returns the moment at which the exemption stops to apply; ok is false if it never does or if Until is no date.
func (e Exemption) end() (end time.Time, ok bool) {
	day, err := time.Parse(time.DateOnly, e.Until)
	return day.AddDate(0, 0, 1), err == nil
}

// ActiveAt reports whether the exemption applies at t: up to the end of the day Until (UTC), or always if that is empty.
// An Until that is no date, which Validate refuses, never applies.
func (e Exemption) ActiveAt(t time.Time) bool {
	if e.Until == "" {
		return true
	}
	end, ok := e.end()
	return ok && t.Before(end)
}

// Expired returns the exemptions that no longer apply at now, in the order of the file. They are no error: a date that
// passes must not keep warmpool from starting.
func (c *WarmPoolConfiguration) Expired(now time.Time) []Exemption {
	var expired []Exemption
	for _, e := range c.Exemptions {
		if !e.ActiveAt(now) {
			expired = append(expired, e)
		}
	}
	return expired
}

// NextExpiry returns the moment at which the next exemption that applies at now stops to; false if none ever does.
func (c *WarmPoolConfiguration) NextExpiry(now time.Time) (time.Time, bool) {
	var next time.Time
	for _, e := range c.Exemptions {
		if end, ok := e.end(); ok && now.Before(end) && (next.IsZero() || end.Before(next)) {
			next = end
		}
	}
	return next, !next.IsZero()
}
