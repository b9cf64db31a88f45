package demand_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/demand"
)

// A registry that gets slow shows before the first placeholder is there, and in full after a few; the rest of the hour is enough.
func TestLeadTimeFollows(t *testing.T) {
	settings := &demand.Settings{LeadTime: 5 * time.Minute}
	pool := &demand.Pool{}
	mean := func() float64 { mean, _ := pool.LeadTime(settings); return mean.Minutes() }
	assert.InDelta(t, 5, mean(), 0, "none has told")
	for range 12 {
		pool.Warmed(7 * time.Minute)
	}
	assert.InDelta(t, 7, mean(), 0.01)
	pool.Underway(settings, []time.Duration{time.Minute, 6 * time.Minute})
	assert.InDelta(t, 7, mean(), 0.01, "they may be as fast as the others")
	pool.Underway(settings, []time.Duration{15 * time.Minute, 18 * time.Minute, time.Minute})
	assert.InDelta(t, 11.25, mean(), 0.1)
	_, longest := pool.LeadTime(settings)
	assert.Equal(t, 18*time.Minute, longest)
	pool.Underway(settings, nil)
	for range 5 { // in an hour, at 40 starts a day
		pool.Warmed(21 * time.Minute)
	}
	assert.Greater(t, mean(), 17.0)
	pool.Warmed(30 * time.Hour)
	pool.Warmed(-time.Hour)
	assert.Less(t, mean(), 32.0, "what takes longer than an hour waits for something else")
}
