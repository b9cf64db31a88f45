package day_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/simulation"
)

// How long a day is, and how many Workspaces come.
var (
	short    = length{time: 35 * time.Second, count: 40, delays: simulation.Delays{Boot: 3 * time.Second, Start: 300 * time.Millisecond, PullGB: 300 * time.Millisecond, Scale: 500 * time.Millisecond}}
	complete = length{time: 5 * time.Minute, count: 48}
)

type length struct {
	time   time.Duration
	count  int
	delays simulation.Delays
}

const seed = 11

// TestDay runs the day with warmpool; with -update without it too.
func TestDay(t *testing.T) {
	if *soak > 0 || *render {
		needs.Skip(t, needs.Flag, "not with -soak or -render")
	}
	of, variants := short, []variant{warmpool}
	p := &proof{}
	if *update {
		text, err := os.ReadFile(*nodes)
		require.NoError(t, err, "give -real the file that test/proof/realnodes -figures has written")
		require.NoError(t, json.Unmarshal(text, &p.Real))
		of, variants = complete, []variant{nothing, byHand, warmpool}
		of.delays = p.Real.delays()
	}
	p.Seed, p.Count, p.Faster = seed, of.count, float64(workday)/float64(of.time)
	p.Delays = delays{of.delays.Boot.Seconds(), round(of.delays.Start.Seconds()), round(of.delays.PullGB.Seconds()), of.delays.Scale.Seconds()}
	for _, v := range variants {
		t.Run(string(v), func(t *testing.T) { p.Variants = append(p.Variants, runDay(t, v, of)) })
	}
	if t.Failed() {
		return
	}
	p.check(t)
	if *update && !t.Failed() {
		p.write(t)
		p.publish(t)
	}
}

func runDay(t *testing.T, v variant, of length) result {
	r := newReplay(t, v, of)
	require.NoError(t, r.run(t.Context(), trace(seed, "", of.count, firstDay), firstDay))
	sum := r.result()
	assert.Len(t, sum.Starts, of.count, "each Workspace has started once")
	if v == warmpool {
		sum.Told = r.told(t, len(sum.Starts))
		r.agree(t, &sum)
		assert.Empty(t, r.errors(t))
	}
	text, err := json.Marshal(sum.Starts)
	require.NoError(t, err)
	t.Log(strings.ReplaceAll(string(text), "},", "},\n"))
	t.Logf("%s: %d starts, median %.2f s, p90 %.2f s, p99 %.2f s, warm %.2f, outside %d, cold on warm %d (and %d while syncing), node-hours %v, synced after %v s, evicted %d, paths %v, told %v",
		v, len(sum.Starts), quantile(sum.seconds(), 0.5), quantile(sum.seconds(), 0.9), quantile(sum.seconds(), 0.99),
		sum.warm(), sum.outside(), sum.coldOnWarm(false), sum.coldOnWarm(true), sum.Hours, sum.Synced, sum.Evicted, sum.Paths, sum.Told)
	return sum
}

// check holds the days to what warmpool promises.
func (p *proof) check(t *testing.T) {
	t.Helper()
	with := p.Variants[len(p.Variants)-1]
	assert.Zero(t, with.outside(), "a Workspace never lands outside of its pool")
	assert.Zero(t, with.coldOnWarm(false), "a Workspace never pulls on a warm node when images are synced")
	assert.Zero(t, with.Evicted)
	assert.Len(t, with.Synced, 2, "the templates' new images have come to all placeholders")
	if len(p.Variants) > 1 {
		hand := p.Variants[len(p.Variants)-2]
		assert.Greater(t, with.warm(), hand.warm(), "more Workspaces start warm than in a pool by hand")
	}
}
