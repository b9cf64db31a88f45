// Package workday is when Workspaces start on a working day: a morning peak, lunch, another peak, and few in the evening.
package workday

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// A working day is from 8 to 18 o'clock.
const (
	Begin  = 8 * time.Hour
	Length = 10 * time.Hour
)

// busy is how many Workspaces start in each hour, as shares.
var busy = []float64{5, 14, 9, 6, 3, 10, 7, 6, 4, 2}

// Total is the sum of all shares.
func Total() float64 {
	total := 0.0
	for _, share := range busy {
		total += share
	}
	return total
}

// Clock is the time since the day's begin at which a part of all shares has come.
func Clock(part float64) time.Duration {
	for hour, share := range busy {
		if part < share {
			return time.Duration((float64(hour) + part/share) * float64(time.Hour))
		}
		part -= share
	}
	return Length
}

// Rate is how many start in an hour at a time, where so many start on a weekday and none at weekends.
func Rate(at time.Time, weekday float64) float64 {
	hour := at.Hour() - int(Begin/time.Hour)
	if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday || hour < 0 || hour >= len(busy) {
		return 0
	}
	return weekday * busy[hour] / Total()
}

// Starts are the times of a Poisson process of that rate, from midnight on.
func Starts(seed uint64, midnight time.Time, days int, weekday float64) []time.Time {
	random := rand.New(rand.NewPCG(seed, 0))
	var starts []time.Time
	for day := range days {
		begin := midnight.AddDate(0, 0, day)
		if Rate(begin.Add(Begin), weekday) == 0 {
			continue
		}
		for left := random.ExpFloat64(); left < weekday; left += random.ExpFloat64() {
			starts = append(starts, begin.Add(Begin+Clock(left/weekday*Total())))
		}
	}
	slices.SortFunc(starts, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
	return starts
}
