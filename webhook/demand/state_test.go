package demand_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/demand"
)

// What is written is read again and goes on as before; 20 pools take less than 64 KiB.
func TestStateSurvives(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead}
	state := &demand.State{Pools: map[string]*demand.Pool{}}
	var at time.Time
	for i := range 20 {
		var pool *demand.Pool
		pool, at = learned(settings, float64(40+23*i))
		for n := range 20 {
			pool.Warmed(meanLead + time.Duration(n)*1237*time.Millisecond)
		}
		state.Pools[fmt.Sprintf("pool-with-a-name-%d", i)] = pool
	}
	data, err := state.Write(nil, at)
	require.NoError(t, err)
	assert.Less(t, size(data), 64<<10)
	read, err := demand.Read(data, at)
	require.NoError(t, err)
	for name, pool := range state.Pools {
		nine := at.Add(9 * time.Hour)
		want, got := run(pool, settings, at, nine), run(read.Pools[name], settings, at, nine)
		assert.InDelta(t, want, got, 1, name)
	}
	again, err := read.Write(data, at)
	require.NoError(t, err)
	assert.Less(t, size(again), 64<<10)
}

func size(data map[string]string) int {
	size := 0
	for name, text := range data {
		size += len(name) + len(text)
	}
	return size
}

// One damaged pool costs no other one, and what a newer warmpool has written stays as it is.
func TestDamagedState(t *testing.T) {
	good, err := (&demand.State{Pools: map[string]*demand.Pool{"good": {At: monday}}}).Write(nil, monday)
	require.NoError(t, err)
	for name, c := range map[string]struct{ text, message string }{
		"no JSON":    {`{"pools`, `pool "bad": what was known of its demand is damaged, and learned anew: unexpected end`},
		"empty":      {``, "damaged"},
		"no version": {`{"starts": [1]}`, "it has no version"},
		"null":       {`null`, "it has no version"},
		"list":       {`[1]`, "damaged"},
		"newer":      {`{"version": 7, "starts": "otherwise"}`, "newer warmpool, and is left as it is; this one learns anew and keeps nothing: use the newer one: it has version 7"},
		"negative":   {`{"version": 1, "starts": [-1]}`, "starts: -1"},
		"huge":       {`{"version": 1, "seen": [1e300]}`, "1e+300 is no count"},
		"text":       {`{"version": 1, "starts": "many"}`, "damaged"},
		"hour":       {`{"version": 1, "hour": {"of": 168}}`, "168 is no hour of the week"},
		"shift":      {`{"version": 1, "shift": 99}`, "shift: 99"},
		"future":     {`{"version": 1, "at": "9999-01-01T00:00:00Z"}`, "in the future"},
		"leads":      {`{"version": 1, "leads": [` + strings.Repeat("1,", 99) + `1]}`, "leads: 100"},
	} {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(good)
			data["bad"] = c.text
			state, err := demand.Read(data, monday)
			require.ErrorContains(t, err, c.message)
			assert.Len(t, state.Pools, 1)
			isNewer := name == "newer"
			assert.Equal(t, isNewer, errors.Is(err, demand.ErrNewer))
			state.Pools["bad"] = &demand.Pool{At: monday}
			data, err = state.Write(data, monday)
			require.NoError(t, err)
			assert.Equal(t, good["good"], data["good"])
			assert.Equal(t, isNewer, data["bad"] == c.text)
		})
	}
	state, err := demand.Read(nil, monday)
	require.NoError(t, err)
	assert.Empty(t, state.Pools)
}

// Pools that nothing has been reported of for long go, and more pools than a ConfigMap takes are an error that names the first.
func TestStateIsBounded(t *testing.T) {
	state := &demand.State{Pools: map[string]*demand.Pool{"old": {At: monday.AddDate(0, 0, -30)}, "away": {At: monday.AddDate(0, 0, -20)}}}
	data, err := state.Write(nil, monday)
	require.NoError(t, err)
	assert.Equal(t, []string{"away"}, slices.Collect(maps.Keys(data)))
	for i := range 1500 {
		state.Pools[fmt.Sprintf("pool-%04d", i)] = &demand.Pool{At: monday}
	}
	data, err = state.Write(nil, monday)
	require.ErrorContains(t, err, "a ConfigMap has no room for what is known of the demand of")
	assert.Less(t, size(data), 1<<20)
	assert.Contains(t, data, "pool-0000")
}
