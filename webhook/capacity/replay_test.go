package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/capacity"
)

var begin = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// poisson are starts at a constant rate.
func poisson(seed uint64, days int, perHour float64) []capacity.Start {
	random := rand.New(rand.NewPCG(seed, 1))
	var starts []capacity.Start
	for at := 0.0; ; {
		at += random.ExpFloat64() / perHour
		if at >= float64(24*days) {
			return starts
		}
		starts = append(starts, capacity.Start{At: begin.Add(time.Duration(at * float64(time.Hour)))})
	}
}

// The formula and the replay of an Exclusive pool agree within 1 point of hits, for constant and for spread lead times: only the
// mean matters. So do idle nodes and the mean wait.
func TestFormulaAgreesWithReplay(t *testing.T) {
	const days, lead = 400, 6 * time.Minute
	end := begin.AddDate(0, 0, days)
	for _, perHour := range []float64{2, 8, 30} {
		starts := poisson(7, days, perHour)
		for name, leads := range map[string][]time.Duration{"constant": {lead}, "spread": {2 * time.Minute, 4 * time.Minute, 12 * time.Minute, 4 * time.Minute}} {
			mean := lead
			if name == "spread" {
				mean = (3 + 8 + 8) * time.Minute / 3
			}
			orders := capacity.Orders{Mean: perHour * mean.Hours()}
			for places := 1; places <= orders.Places(0.99); places++ {
				t.Run(fmt.Sprintf("%s/%v/%d", name, perHour, places), func(t *testing.T) {
					r := capacity.Pool{Places: 1, Lead: leads, Seed: 3}.Replay(starts, capacity.Fixed(places), begin.AddDate(0, 0, 1), end)
					assert.InDelta(t, orders.Hits(places), r.Hits(), 0.01)
					assert.InDelta(t, orders.Idle(places), r.Idle, 0.02*float64(places))
					assert.InDelta(t, orders.Waiting(places)/perHour, r.MeanWait().Hours(), 0.003)
				})
			}
		}
	}
}

func at(minutes float64) time.Time { return begin.Add(time.Duration(minutes * float64(time.Minute))) }

func start(minutes, stays float64) capacity.Start {
	return capacity.Start{At: at(minutes), Stays: time.Duration(stays * float64(time.Minute))}
}

// Two places, three starts: the third waits for the node that the first has ordered.
func TestWaits(t *testing.T) {
	pool := capacity.Pool{Places: 1, Lead: []time.Duration{6 * time.Minute}}
	r := pool.Replay([]capacity.Start{start(0, 0), start(60, 0), start(61, 0), start(62, 0)}, capacity.Fixed(2), at(30), at(120))
	assert.Equal(t, 2, r.InPlace)
	assert.Equal(t, []time.Duration{4 * time.Minute}, r.Waits)
	assert.Equal(t, 80*time.Second, r.MeanWait())
	assert.Zero(t, r.WaitAt(0.5))
	assert.Equal(t, 4*time.Minute, r.WaitAt(0.95))
}

// Nodes take two Workspaces beside the placeholder and a third in its place; the evicted placeholder orders a node.
func TestBeside(t *testing.T) {
	pool := capacity.Pool{Places: 3, Beside: 2, Lead: []time.Duration{6 * time.Minute}}
	var starts []capacity.Start
	for minute := range 7 {
		starts = append(starts, start(30+float64(minute)/10, 0))
	}
	r := pool.Replay(starts, capacity.Fixed(1), at(0), at(120))
	assert.Equal(t, 2, r.Beside)
	assert.Equal(t, 1, r.InPlace)
	assert.Len(t, r.Waits, 4, "the next node takes three, another one the fourth")
}

// A node whose Workspace has ended takes the placeholder that waits for a node, and is warm at once. The node on its way is for
// the next one that waits, or goes again after consolidateAfter.
func TestNodeIsUsedAgain(t *testing.T) {
	pool := capacity.Pool{Places: 1, Lead: []time.Duration{10 * time.Minute}, ConsolidateAfter: 5 * time.Minute}
	starts := []capacity.Start{start(0, 0), start(30, 2), start(33, 0)}
	r := pool.Replay(starts, capacity.Fixed(1), at(20), at(80))
	assert.Equal(t, 2, r.InPlace)
	assert.InDelta(t, (10.0+1+40)/60, r.Idle, 1e-9, "up to 30, from 32 to 33, and from 40 on")
	r = pool.Replay(starts[:2], capacity.Fixed(1), at(20), at(80))
	assert.InDelta(t, (10.0+48+5)/60, r.Idle, 1e-9, "up to 30, from 32 on, and another from 40 to 45")
}

// One node more than the limit is not ordered: the Workspace waits until another ends.
func TestLimit(t *testing.T) {
	pool := capacity.Pool{Places: 1, Lead: []time.Duration{6 * time.Minute}, MaxNodes: 1, ConsolidateAfter: time.Minute}
	r := pool.Replay([]capacity.Start{start(20, 30), start(30, 30)}, capacity.Fixed(1), at(0), at(120))
	assert.Equal(t, []time.Duration{20 * time.Minute}, r.Waits)
	assert.InDelta(t, 2.0, r.NodeHours, 1e-9)
}

// Fewer placeholders: an empty node goes first, after consolidateAfter.
func TestShrinks(t *testing.T) {
	pool := capacity.Pool{Places: 1, Lead: []time.Duration{6 * time.Minute}, ConsolidateAfter: 10 * time.Minute}
	policy := capacity.ByTime(func(now time.Time) int {
		if now.Before(at(60)) {
			return 4
		}
		return 1
	})
	r := pool.Replay([]capacity.Start{start(0, 0)}, policy, at(50), at(110))
	assert.InDelta(t, (4*10.0+4*10+1*40)/60, r.Idle, 0.02)
}

func TestWindows(t *testing.T) {
	w := capacity.Windows{From: 8, To: 18, High: 5, Low: 1, Zone: time.UTC}
	assert.Equal(t, 1, w.Keep(begin, 0))
	assert.Equal(t, 5, w.Keep(begin.Add(8*time.Hour), 0))
	assert.Equal(t, 1, w.Keep(begin.Add(18*time.Hour), 0))
	assert.Equal(t, 1, w.Keep(begin.AddDate(0, 0, 5).Add(9*time.Hour), 0), "Saturday")
}

func TestNothingToReplay(t *testing.T) {
	assert.Equal(t, 1.0, capacity.Pool{}.Replay(nil, capacity.Fixed(1), at(0), at(1)).Hits())
	assert.Zero(t, capacity.Pool{}.Replay([]capacity.Start{start(0, 0)}, capacity.Fixed(1), at(1), at(1)).Starts)
}

// BenchmarkReplay replays a year of 400 starts a day that stay for two hours, in a pool of Exclusive nodes and of shared ones.
func BenchmarkReplay(b *testing.B) {
	starts := poisson(1, 365, 400.0/24)
	for i := range starts {
		starts[i].Stays = 2 * time.Hour
	}
	for _, pool := range []capacity.Pool{{Places: 1}, {Places: 4, Beside: 3}} {
		pool.Lead, pool.ConsolidateAfter = []time.Duration{5 * time.Minute, 9 * time.Minute}, 5*time.Minute
		b.Run(fmt.Sprintf("places-%d", pool.Places), func(b *testing.B) {
			var r *capacity.Result
			for b.Loop() {
				r = pool.Replay(starts, capacity.Fixed(6), begin, begin.AddDate(1, 0, 0))
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/1000/float64(b.N), "s/year")
			b.ReportMetric(100*r.Hits(), "%hits")
		})
	}
}
