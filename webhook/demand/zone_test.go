package demand_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/demand"
)

// Who sets a time zone later keeps what was learned, at the hours of that zone.
func TestZoneIsSetLater(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead}
	pool, at := learned(settings, 150)
	want := pool.Rates(settings)
	pool.Keep(settings, at)
	for _, c := range []struct {
		zone  string
		hours int
	}{{"America/New_York", -5}, {"Asia/Kolkata", 6}, {"UTC", 0}} {
		zone, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		settings.Zone = zone
		pool.Keep(settings, at)
		assert.Equal(t, c.zone, pool.Zone)
		got := pool.Rates(settings)
		for i := range want {
			assert.InDelta(t, want[i], got[(i+c.hours+168)%168], 0.05+want[i]/20, "%s, hour %d", c.zone, i)
		}
	}
}
