package demand_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/test/harness/workday"
	"warmpool.sh/webhook/capacity"
	"warmpool.sh/webhook/demand"
)

// learned is a pool that has seen weeks of the profile.
func learned(settings *demand.Settings, weekday float64) (*demand.Pool, time.Time) {
	pool, end := &demand.Pool{}, monday.AddDate(0, 0, 42)
	exclusive.Replay(starts(workday.Starts(5, monday, 42, weekday)), demand.Policy{Pool: pool, Settings: settings}, monday, end)
	return pool, end
}

// run has the pool decide each minute, and returns the last decision.
func run(pool *demand.Pool, settings *demand.Settings, from, to time.Time) (places int) {
	for at := from; !at.After(to); at = at.Add(time.Minute) {
		places = pool.Keep(settings, at)
	}
	return places
}

// Places are there a lead time and a tenth before the hour that needs them, and go 15 minutes after it.
func TestGrowsAheadAndShrinksSlowly(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: 10 * time.Minute}
	pool, at := learned(settings, 150)
	eight := at.Add(workday.Begin)
	assert.Zero(t, run(pool, settings, at, eight.Add(-12*time.Minute)))
	assert.Positive(t, run(pool, settings, eight.Add(-11*time.Minute), eight.Add(-11*time.Minute)))
	six := eight.Add(workday.Length)
	assert.Positive(t, run(pool, settings, eight, six.Add(14*time.Minute)))
	assert.Zero(t, run(pool, settings, six.Add(14*time.Minute), six.Add(17*time.Minute)))
}

func TestBounds(t *testing.T) {
	settings := &demand.Settings{Objective: 0.99, LeadTime: 10 * time.Minute, Min: 1, Max: 2}
	pool, at := learned(settings, 400)
	assert.Equal(t, 1, run(pool, settings, at, at.Add(time.Hour)))
	assert.Equal(t, 2, run(pool, settings, at.Add(time.Hour), at.Add(workday.Begin+90*time.Minute)))
	assert.Less(t, float64(pool.Shift), 2.0, "misses that Max causes raise nothing, but for those of hours below it")
}

// Forty starts in a minute that no week has seen: the objective holds again within two lead times, and the pool is small again
// within an hour.
func TestBurst(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead}
	all := workday.Starts(6, monday, 50, 150)
	burst := monday.AddDate(0, 0, 42).Add(workday.Begin + 3*time.Hour + 30*time.Minute)
	var with []time.Time
	for i, at := range all {
		if at.After(burst) && (i == 0 || !all[i-1].After(burst)) {
			for n := range 40 {
				with = append(with, burst.Add(time.Duration(n)*1500*time.Millisecond))
			}
		}
		with = append(with, at)
	}
	policy := &recorder{Policy: demand.Policy{Pool: &demand.Pool{}, Settings: settings}}
	exclusive.Replay(starts(slices.SortedFunc(slices.Values(with), time.Time.Compare)), policy, monday, monday.AddDate(0, 0, 43))
	before := policy.kept[burst.Add(-time.Minute).Truncate(time.Minute)]
	after := policy.kept[burst.Add(75*time.Minute).Truncate(time.Minute)]
	assert.Greater(t, policy.kept[burst.Add(2*time.Minute).Truncate(time.Minute)], before)
	assert.LessOrEqual(t, after, before+1)
	hits, count := 0, 0
	for _, s := range policy.starts {
		if s.at.After(burst.Add(time.Minute + 2*meanLead)) {
			count++
			if s.found {
				hits++
			}
		}
	}
	assert.Greater(t, count, 50)
	assert.GreaterOrEqual(t, float64(hits)/float64(count), 0.93)
}

type recorder struct {
	demand.Policy

	kept   map[time.Time]int
	starts []recorded
}

type recorded struct {
	at    time.Time
	found bool
}

func (r *recorder) Keep(now time.Time, nodes int) int {
	if r.kept == nil {
		r.kept = map[time.Time]int{}
	}
	places := r.Policy.Keep(now, nodes)
	r.kept[now.Truncate(time.Minute)] = places
	return places
}

func (r *recorder) Started(now time.Time, found bool) {
	r.Policy.Started(now, found)
	r.starts = append(r.starts, recorded{now, found})
}

// Hours that are like each other keep alike: none goes cold between them because it has the fewest starts, or few were counted.
func TestNeighbouringHours(t *testing.T) {
	for _, tr := range []trace{flat(24), flat(100), flat(600)} {
		t.Run(tr.name, func(t *testing.T) {
			for _, objective := range []float64{0.9, 0.95, 0.99} {
				settings := &demand.Settings{Objective: objective, LeadTime: meanLead}
				pool := &demand.Pool{}
				exclusive.Replay(tr.starts, demand.Policy{Pool: pool, Settings: settings}, tr.learn, tr.until)
				hours := pool.Hours(settings)
				for i, places := range hours {
					before, after := hours[(i+len(hours)-1)%len(hours)], hours[(i+1)%len(hours)]
					assert.GreaterOrEqual(t, places, min(before, after)-1, "objective %v, hour %d of %v", objective, i, hours)
					assert.Positive(t, places, "objective %v, hour %d of %v", objective, i, hours)
				}
			}
		})
	}
}

// An hour in which nobody ever comes keeps none, next to busy ones.
func TestQuietHours(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead}
	pool, _ := learned(settings, 150)
	for hour, places := range pool.Hours(settings) {
		day, of := time.Weekday(hour/24), time.Duration(hour%24)*time.Hour
		if busy := of >= workday.Begin && of < workday.Begin+workday.Length; busy && day != time.Saturday && day != time.Sunday {
			assert.Positive(t, places, "%s %s", day, of)
		} else {
			assert.Zero(t, places, "%s %s", day, of)
		}
	}
}

// A pool whose nodes take three times as long is sized for it after a dozen of them.
func TestLeadTimeTriples(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead}
	pool, at := learned(settings, 150)
	noon := at.Add(12*time.Hour + 30*time.Minute)
	before := run(pool, settings, at, noon)
	for range 12 {
		pool.Warmed(3 * meanLead)
	}
	mean, longest := pool.LeadTime(settings)
	assert.Equal(t, 3*meanLead, mean)
	assert.Equal(t, 3*meanLead, longest)
	assert.Greater(t, run(pool, settings, noon, noon.Add(time.Minute)), before)
}

// Events add what they bring a lead time ahead, and no one comes at Christmas; neither changes what other weeks expect.
func TestEvents(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: 10 * time.Minute}
	pool, at := learned(settings, 48)
	class := demand.Event{Name: "class", From: at.Add(20 * time.Hour), To: at.Add(20*time.Hour + 30*time.Minute), Starts: 200}
	settings.Events = []demand.Event{class, {Name: "holidays", From: at.AddDate(0, 0, 1), To: at.AddDate(0, 0, 3)}}
	assert.Zero(t, run(pool, settings, at, class.From.Add(-12*time.Minute)))
	assert.InDelta(t, 80, float64(run(pool, settings, class.From.Add(-12*time.Minute), class.From.Add(-10*time.Minute))), 20)
	expected := pool.Rates(settings)
	for i := range 200 {
		pool.Started(settings, class.From.Add(time.Duration(i)*9*time.Second), true)
	}
	run(pool, settings, class.From, class.To.Add(30*time.Minute))
	assert.InDelta(t, expected[class.From.Hour()+24], pool.Rates(settings)[class.From.Hour()+24], 0.1)
	assert.Zero(t, run(pool, settings, class.To.Add(31*time.Minute), at.AddDate(0, 0, 2).Add(12*time.Hour)))
	assert.Positive(t, run(pool, settings, at.AddDate(0, 0, 2).Add(12*time.Hour), at.AddDate(0, 0, 3).Add(12*time.Hour)))
}

// A clock that jumps by years, or back, costs what is known of the last hours alone.
func TestClockJumps(t *testing.T) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead}
	pool, at := learned(settings, 150)
	want := pool.Rates(settings)
	for _, jump := range []time.Duration{20 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, -30 * time.Minute, 0} {
		pool.Keep(settings, at.Add(jump))
		pool.Started(settings, at.Add(jump), true)
	}
	got := pool.Rates(settings)
	for i := range want {
		assert.InDelta(t, want[i], got[i], 0.05+want[i]/10)
	}
}

// By prices, the dearer a user's waiting is, the more places are kept.
func TestPrices(t *testing.T) {
	cheap := &demand.Settings{WaitingHour: 6, IdleHour: 5.4, LeadTime: meanLead}
	pool, at := learned(cheap, 400)
	nine := at.Add(9*time.Hour + 30*time.Minute)
	few := run(pool, cheap, nine, nine)
	dear := *cheap
	dear.WaitingHour = 600
	assert.Greater(t, run(pool, &dear, nine, nine), few)
}

// Nodes that take several Workspaces: the objective is met all the same.
func TestSharedNodes(t *testing.T) {
	tr := profile(400, 0)
	for i := range tr.starts {
		tr.starts[i].Stays = 2 * time.Hour
	}
	shared := capacity.Pool{Places: 4, Beside: 3, Lead: exclusive.Lead, ConsolidateAfter: 5 * time.Minute}
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead, Places: 4, ConsolidateAfter: 5 * time.Minute}
	r := shared.Replay(tr.starts, demand.Policy{Pool: &demand.Pool{}, Settings: settings}, tr.learn, tr.until)
	t.Logf("hits %.3f, idle %.2f", r.Hits(), r.Idle)
	assert.GreaterOrEqual(t, r.Hits(), 0.93)
}

// BenchmarkStep is a step of 20 pools, with the hour's forecast made anew each 60th time.
func BenchmarkStep(b *testing.B) {
	settings := &demand.Settings{Objective: 0.95, LeadTime: meanLead}
	var pools []*demand.Pool
	var at time.Time
	for range 20 {
		var pool *demand.Pool
		pool, at = learned(settings, 400)
		pools = append(pools, pool)
	}
	at = at.Add(9 * time.Hour)
	for b.Loop() {
		at = at.Add(time.Minute)
		for _, pool := range pools {
			pool.Keep(settings, at)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/step")
}

// BenchmarkGoals reports hits and idle nodes of each trace at 0.95, and idle beside the best fixed number's.
func BenchmarkGoals(b *testing.B) {
	for _, tr := range []trace{profile(48, 0), profile(150, 0), profile(400, 0), realTrace(b)} {
		b.Run(tr.name, func(b *testing.B) {
			var f figures
			for b.Loop() {
				f = tr.judge(0.95, 0, 1)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(100*f.hits, "%hits")
			b.ReportMetric(f.idle, "idle")
			b.ReportMetric(f.toFixed, "x-fixed")
			b.ReportMetric(f.toForesight, "x-clairvoyant")
		})
	}
}
