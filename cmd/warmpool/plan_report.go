package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"warmpool.sh/webhook/capacity"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/sizing"
)

// planReport is what plan prints in JSON and YAML.
type planReport struct {
	Pools []*poolPlan `json:"pools"`

	nodePrice float64
}

type poolPlan struct {
	Name            string       `json:"name"`
	Starts          int          `json:"starts"`
	Objective       float64      `json:"objective"`
	LeadTimeSeconds float64      `json:"leadTimeSeconds"`
	Places          int          `json:"places"`
	TimeZone        string       `json:"timeZone,omitempty"`
	Simulated       bool         `json:"simulated,omitempty"`
	Hours           []hourPlan   `json:"hours"`
	Judged          judgedPlan   `json:"judged"`
	Policies        []policyPlan `json:"policies"`

	// For the page: the starts an hour that are expected in each of Hours, and what more or fewer hits cost.
	rates  []float64
	curves []planCurve
	asked  *demand.Settings
}

type hourPlan struct {
	Weekday  string `json:"weekday"`
	Hour     int    `json:"hour"`
	Replicas int    `json:"replicas"`
}

type judgedPlan struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Starts int       `json:"starts"`
}

// policyPlan is what became of the judged starts under a policy.
type policyPlan struct {
	Name            string  `json:"name"`
	Replicas        *int    `json:"replicas,omitempty"`
	Detail          string  `json:"detail,omitempty"`
	Hits            float64 `json:"hits"`
	Idle            float64 `json:"idle"`
	MeanWaitSeconds float64 `json:"meanWaitSeconds"`
	P50WaitSeconds  float64 `json:"p50WaitSeconds"`
	P95WaitSeconds  float64 `json:"p95WaitSeconds"`
	NodeHours       float64 `json:"nodeHours"`
	Cost            float64 `json:"cost"`
}

// longestHistory bounds the minutes that are replayed.
const longestHistory = 5 * 366 * 24 * time.Hour

func (o *planOptions) plan(h *history, next func(string)) (*planReport, error) {
	report := &planReport{nodePrice: o.nodePrice}
	for _, name := range slices.Sorted(maps.Keys(h.starts)) {
		next("pool " + name)
		pool, err := o.planPool(name, h.starts[name])
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", name, err)
		}
		report.Pools = append(report.Pools, pool)
	}
	return report, nil
}

// planner replays the starts of a pool.
type planner struct {
	*planOptions

	pool   capacity.Pool
	starts []capacity.Start
	// late are those from which a pool is as it is at from, for a policy that does not learn.
	late     []capacity.Start
	from, to time.Time
}

func (o *planOptions) planPool(name string, starts []capacity.Start) (*poolPlan, error) {
	slices.SortStableFunc(starts, func(a, b capacity.Start) int { return a.At.Compare(b.At) })
	begin := starts[0].At.UTC().Truncate(24 * time.Hour)
	end := starts[len(starts)-1].At.UTC().Truncate(time.Hour).Add(time.Hour)
	if last := starts[len(starts)-1].At; last.Sub(begin) > longestHistory {
		return nil, fmt.Errorf("times from %s to %s: more than 5 years are not planned; is one of them wrong?", begin.Format(time.DateOnly), last.Format(time.DateOnly))
	}
	learn := o.learnFirst
	if learn == 0 {
		learn = (end.Sub(begin) * 2 / 3).Round(time.Hour)
	}
	p := &planner{
		planOptions: o, starts: starts, from: begin.Add(learn), to: end,
		pool: capacity.Pool{Places: o.places, Beside: o.places - 1, Lead: []time.Duration{o.leadTime}, ConsolidateAfter: o.consolidateAfter},
	}
	first := sort.Search(len(starts), func(i int) bool { return !starts[i].At.Before(p.from) })
	if first == 0 || first == len(starts) {
		return nil, fmt.Errorf("%d starts before and %d after %s: some of each are needed, to learn from and to judge by; see --learn",
			first, len(starts)-first, p.from.Format(time.RFC3339))
	}
	p.late = starts[p.warmedUp():]
	plan := &poolPlan{
		Name: name, Starts: len(starts), Objective: o.objective, LeadTimeSeconds: o.leadTime.Seconds(), Places: o.places,
		Judged: judgedPlan{From: p.from, To: p.to, Starts: len(starts) - first},
		asked:  o.settings(),
	}
	p.compare(plan)
	return plan, nil
}

// replay judges a policy that does not learn.
func (p *planner) replay(policy capacity.Policy) *capacity.Result {
	return p.pool.Replay(p.late, policy, p.from, p.to)
}

// warmedUp is the first start from which on the pool is as full as if it had run from the first one.
func (p *planner) warmedUp() int {
	longest := time.Duration(0)
	for _, s := range p.starts {
		longest = max(longest, s.Stays)
	}
	since := p.from.Add(-longest - 24*time.Hour)
	return sort.Search(len(p.starts), func(i int) bool { return !p.starts[i].At.Before(since) })
}

// learn replays a pool that learns and keeps a share of starts as its promise.
func (p *planner) learn(objective float64) *capacity.Result {
	settings := p.settings()
	settings.Objective = objective
	return p.pool.Replay(p.starts, demand.Policy{Pool: &demand.Pool{}, Settings: settings}, p.from, p.to)
}

// compare judges the policies.
func (p *planner) compare(plan *poolPlan) {
	pool, settings := &demand.Pool{}, p.settings()
	had := p.pool.Replay(p.starts, demand.Policy{Pool: pool, Settings: settings}, p.from, p.to)
	plan.setHours(pool, settings)
	reached := had.Hits()
	add := func(row policyPlan, r *capacity.Result) {
		row.Hits, row.Idle, row.NodeHours = rounded(r.Hits(), 4), rounded(r.Idle, 3), rounded(r.NodeHours, 1)
		row.MeanWaitSeconds, row.P50WaitSeconds = rounded(r.MeanWait().Seconds(), 1), rounded(r.WaitAt(0.5).Seconds(), 1)
		row.P95WaitSeconds, row.Cost = rounded(r.WaitAt(0.95).Seconds(), 1), rounded(r.NodeHours*p.nodePrice, 2)
		plan.Policies = append(plan.Policies, row)
	}
	add(policyPlan{Name: "demand"}, had)
	fixed := p.fewest(0, reached, func(n int) capacity.Policy { return capacity.Fixed(n) })
	add(policyPlan{Name: "fixed", Replicas: &fixed}, p.replay(capacity.Fixed(fixed)))
	scaler := p.scaler
	if scaler == nil {
		scaler = &planScaler{"as it ships: nodesPerReplica 4, min 2, max 5", func(nodes int) int { return shippedCPA.Replicas(nodes, 0) }}
	}
	add(policyPlan{Name: "cpa", Detail: scaler.detail}, p.replay(capacity.ByNodes(scaler.replicas)))
	windows := p.windows(reached, fixed)
	add(policyPlan{Name: "windows", Detail: fmt.Sprintf("%d on weekdays from %d to %d o'clock, else %d", windows.High, windows.From, windows.To, windows.Low)}, p.replay(windows))
	add(policyPlan{Name: "clairvoyant"}, p.clairvoyant(reached))
	if p.output == "html" {
		plan.curves = p.curves(fixed)
	}
}

// setHours takes over the week that a pool keeps, from Monday on.
func (p *poolPlan) setHours(pool *demand.Pool, settings *demand.Settings) {
	hours, rates := pool.Hours(settings), pool.Rates(settings)
	p.Hours, p.rates = nil, nil
	for i := range hours {
		of := (i + 24) % len(hours)
		p.rates = append(p.rates, rates[of])
		p.Hours = append(p.Hours, hourPlan{time.Weekday(of / 24).String(), of % 24, hours[of]})
	}
}

// shippedCPA is what the base of the manifests has.
var shippedCPA = sizing.Linear{NodesPerReplica: 4, Min: 2, Max: 5, PreventSinglePointFailure: true}

func rounded(x float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(x*unit) / unit
}

// fewest is the least number with which a policy reaches the hits, or the most there may be.
func (p *planner) fewest(from int, hits float64, policy func(int) capacity.Policy) int {
	end := from + 1
	for end < mostPlaceholders && p.replay(policy(end)).Hits() < hits {
		end *= 2
	}
	return from + sort.Search(min(end, mostPlaceholders)-from, func(n int) bool { return p.replay(policy(from+n)).Hits() >= hits })
}

// windows are the two-window schedule with the hits that costs least: the busy hours of the weekdays learned from.
func (p *planner) windows(hits float64, fixed int) capacity.Windows {
	var counts [24]int
	total := 0
	for _, s := range p.starts {
		if at := s.At.In(p.zone); s.At.Before(p.from) && at.Weekday() != time.Saturday && at.Weekday() != time.Sunday {
			counts[at.Hour()]++
			total++
		}
	}
	w := capacity.Windows{From: 0, To: 24, Zone: p.zone}
	busy := func(hour int) bool { return counts[hour]*24 >= total }
	for w.From < 23 && !busy(w.From) {
		w.From++
	}
	for w.To > w.From+1 && !busy(w.To-1) {
		w.To--
	}
	best, idle := w, math.Inf(1)
	for low := p.least; low <= fixed; low += 1 + fixed/5 {
		try := w
		try.Low = low
		at := func(high int) capacity.Policy { try.High = high; return try }
		try.High = p.fewest(low, hits, at)
		if r := p.replay(try); r.Idle < idle && r.Hits() >= hits {
			best, idle = try, r.Idle
		}
	}
	if math.IsInf(idle, 1) {
		best.High, best.Low = fixed, fixed
	}
	return best
}
