package capacity

import "time"

// Clairvoyant knows the rate of starts in an hour at any time, but not the starts: it keeps by the formula what the objective asks
// for, a lead time ahead. Where the rate is 0 it keeps nothing.
func Clairvoyant(rate func(at time.Time) float64, lead time.Duration, objective float64) Policy {
	return ByTime(func(now time.Time) int {
		most := max(rate(now), rate(now.Add(lead)))
		if most <= 0 {
			return 0
		}
		return Orders{Mean: most * lead.Hours()}.Places(objective)
	})
}
