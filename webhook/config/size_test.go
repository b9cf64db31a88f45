package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/config"
)

func TestSizeDefaults(t *testing.T) {
	c, err := config.Load([]byte(header+"pools: [{name: a, nodePools: [a], size: {max: 4}}, {name: b, nodePools: [b], size: {mode: Apply, max: 4, cost: {waitingHour: 60, nodeHour: 5}}}]"), ruleIDs)
	require.NoError(t, err)
	assert.Equal(t, &config.Size{Mode: config.Recommend, Objective: 0.95, Min: new(int32(1)), Max: 4, TimeZone: "UTC"}, c.Pools[0].Size)
	assert.Equal(t, &config.Size{
		Mode: config.Apply, Cost: &config.Cost{WaitingHour: 60, NodeHour: 5}, Min: new(int32(1)), Max: 4, TimeZone: "UTC",
	}, c.Pools[1].Size)
}

// Events are in the pool's time zone, and both days of a span are whole.
func TestEventSpan(t *testing.T) {
	berlin := (&config.Size{TimeZone: "Europe/Berlin"}).Location()
	c, err := config.Load([]byte(header+`pools: [{name: a, nodePools: [a], size: {timeZone: Europe/Berlin, events: [
		{name: class, at: "2027-01-12T09:00", for: 30m, starts: 200}, {name: Christmas, from: 2026-12-24, to: 2027-01-02, starts: 0}, {name: clocks change, from: 2027-03-28, to: 2027-03-28, starts: 0}]}}]`), ruleIDs)
	require.NoError(t, err)
	for i, want := range [][2]string{
		{"2027-01-12T08:00:00Z", "2027-01-12T08:30:00Z"}, {"2026-12-23T23:00:00Z", "2027-01-02T23:00:00Z"}, {"2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"},
	} {
		from, to, ok := c.Pools[0].Size.Events[i].Span(berlin)
		assert.True(t, ok)
		assert.Equal(t, want, [2]string{from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)})
	}
	_, _, ok := (&config.Event{At: "soon"}).Span(berlin)
	assert.False(t, ok)
	assert.Equal(t, time.UTC, (&config.Size{TimeZone: "Berlin"}).Location())
}
