package demand_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/workday"
	"warmpool.sh/webhook/capacity"
	"warmpool.sh/webhook/demand"
)

var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// exclusive is a pool whose nodes take 5.2 to 8.5 minutes to get warm.
var exclusive = capacity.Pool{Places: 1, Lead: []time.Duration{312 * time.Second, 510 * time.Second}}

const meanLead = 411 * time.Second

// trace is starts of which the first days are for learning. idle is the most that may be idle, as a part of the best fixed number's.
type trace struct {
	name         string
	starts       []capacity.Start
	rate         func(time.Time) float64
	learn, until time.Time
	idle         float64
}

func profile(weekday float64, idle float64) trace {
	const learn, judge = 6 * 7, 8 * 7
	return trace{
		name:   fmt.Sprintf("profile-%.0f", weekday),
		starts: starts(workday.Starts(uint64(weekday), monday, learn+judge, weekday)),
		rate:   func(at time.Time) float64 { return workday.Rate(at, weekday) },
		learn:  monday.AddDate(0, 0, learn), until: monday.AddDate(0, 0, learn+judge), idle: idle,
	}
}

func starts(times []time.Time) []capacity.Start {
	var all []capacity.Start
	for _, at := range times {
		all = append(all, capacity.Start{At: at})
	}
	return all
}

// realTrace is the recorded trace: one week is learned from, two are judged.
func realTrace(t testing.TB) trace {
	t.Helper()
	folder := os.Getenv("WARMPOOL_FIELD_DATA")
	var err error
	if folder == "" {
		err = errors.New("WARMPOOL_FIELD_DATA names no folder with traces/gpu-pods-21-days.txt, times at which pods were created in a real cluster")
	}
	needs.Check(t, needs.FieldData, err)
	file, err := os.Open(filepath.Join(folder, "traces", "gpu-pods-21-days.txt"))
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // only read from
	var times []time.Time
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			seconds, err := strconv.Atoi(line)
			require.NoError(t, err)
			times = append(times, monday.Add(time.Duration(seconds)*time.Second))
		}
	}
	around := func(at time.Time) float64 { // the rate of the two hours around
		count := 0
		for _, start := range times {
			if since := start.Sub(at); since > -time.Hour && since <= time.Hour {
				count++
			}
		}
		return float64(count) / 2
	}
	rates := map[time.Time]float64{}
	return trace{
		name: "real", starts: starts(times), learn: monday.AddDate(0, 0, 7), until: monday.AddDate(0, 0, 21), idle: 0.80,
		rate: func(at time.Time) float64 {
			at = at.Truncate(10 * time.Minute)
			if _, known := rates[at]; !known {
				rates[at] = around(at)
			}
			return rates[at]
		},
	}
}

// flat is starts at any hour of the day alike, in bursts of two now and then.
func flat(perDay float64) trace {
	random := rand.New(rand.NewPCG(uint64(perDay), 5))
	var times []time.Time
	for at := monday; at.Before(monday.AddDate(0, 0, 21)); {
		at = at.Add(time.Duration(random.ExpFloat64() / perDay * float64(24*time.Hour)))
		times = append(times, at)
		if random.IntN(10) == 0 {
			times = append(times, at)
		}
	}
	return trace{name: fmt.Sprintf("flat-%.0f", perDay), starts: starts(times), learn: monday.AddDate(0, 0, 14), until: monday.AddDate(0, 0, 21)}
}

// figures are what came of the objective on a trace.
type figures struct {
	hits, idle           float64
	toFixed, toForesight float64 // idle, as parts of theirs
}

// judge replays a pool whose nodes take scale times as long as exclusive's.
func (tr trace) judge(objective float64, least int, scale float64) figures {
	scaled := func(d time.Duration) time.Duration { return time.Duration(scale * float64(d)) }
	pool, lead := exclusive, scaled(meanLead)
	pool.Lead = []time.Duration{scaled(exclusive.Lead[0]), scaled(exclusive.Lead[1])}
	replay := func(policy capacity.Policy) *capacity.Result {
		return pool.Replay(tr.starts, policy, tr.learn, tr.until)
	}
	settings := &demand.Settings{Objective: objective, Min: least, LeadTime: lead}
	had := replay(demand.Policy{Pool: &demand.Pool{}, Settings: settings})
	f := figures{hits: had.Hits(), idle: had.Idle}
	for places := 1; ; places++ {
		if fixed := replay(capacity.Fixed(places)); fixed.Hits() >= f.hits {
			f.toFixed = f.idle / fixed.Idle
			break
		}
	}
	for share := objective; ; share += (1 - share) / 4 {
		if best := replay(capacity.Clairvoyant(tr.rate, lead, share)); best.Hits() >= f.hits || share > 0.9999 {
			f.toForesight = f.idle / best.Idle
			return f
		}
	}
}

// TestGoals judges the promise on days that were not learned from: the objective is met within 2 points, for at most a part of
// what the best fixed number of placeholders costs, and little more than if the rates were known beforehand.
func TestGoals(t *testing.T) {
	for _, tr := range []trace{profile(48, 0.5), profile(150, 0.36), profile(400, 0.30)} {
		t.Run(tr.name, tr.test)
	}
	t.Run("real", func(t *testing.T) { realTrace(t).test(t) })
}

// The fixed number of placeholders has steps: on one trace of two weeks, one more start with a place can make it cost a quarter
// more. So idle is judged by the mean over pools whose nodes take longer, or less long.
func (tr trace) test(t *testing.T) {
	scales := []float64{1}
	if tr.idle > 0.5 {
		scales = []float64{0.5, 0.7, 1, 1.4, 2}
	}
	for _, objective := range []float64{0.9, 0.95, 0.99} {
		for least := range 2 {
			toFixed, toForesight := 0.0, 0.0
			for _, scale := range scales {
				f := tr.judge(objective, least, scale)
				t.Logf("objective %.2f, min %d, lead time × %.1f: %+v", objective, least, scale, f)
				assert.InDelta(t, objective, f.hits, 0.02)
				toFixed += f.toFixed / float64(len(scales))
				toForesight += f.toForesight / float64(len(scales))
			}
			assert.LessOrEqual(t, toFixed, tr.idle)
			if least == 0 {
				assert.LessOrEqual(t, toForesight, 1.3)
			}
		}
	}
}
