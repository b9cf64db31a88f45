package capacity

import (
	"math/rand/v2"
	"time"
)

// Pool is how a pool's nodes come and go.
type Pool struct {
	// Places is how many Workspaces a node takes, Beside how many of them beside its placeholder: the next takes its place.
	// An Exclusive pool has 1 and 0.
	Places, Beside int
	// Lead is how long a node takes to get warm, from the order: quantiles at equal distances from the least to the most, between
	// which it is drawn evenly. One stands for a constant.
	Lead []time.Duration
	// ConsolidateAfter is how long a node stays that holds nothing.
	ConsolidateAfter time.Duration
	// MaxNodes is the NodePool's limit; 0: none. What waits for more gets a node once another has gone.
	MaxNodes int
	// Step is the time between two decisions of the policy; 0 stands for a minute.
	Step time.Duration
	// Seed draws the lead times.
	Seed uint64
}

// Start is a Workspace that somebody starts. One that stays for 0 stays for good: nothing is known of its end, and its node
// counts no more once it is full.
type Start struct {
	At    time.Time
	Stays time.Duration
}

// Replay is what becomes of starts, which are in their order, under a policy. Only what is at or after from counts; what was
// before fills the pool, and is how the policy learns. It ends at the end.
func (p Pool) Replay(starts []Start, policy Policy, from, end time.Time) *Result {
	if len(starts) == 0 || !from.Before(end) {
		return &Result{}
	}
	began := starts[0].At
	if from.Before(began) {
		began = from
	}
	if p.Step <= 0 {
		p.Step = time.Minute
	}
	r := &replay{
		Pool: p, policy: policy, began: began, from: from.Sub(began), end: end.Sub(began),
		random: rand.New(rand.NewPCG(p.Seed, 0)), //nolint:gosec // drawn the same way each time
		result: &Result{},
	}
	r.run(starts)
	return r.result
}

// replay is a pool at work. Times are since its beginning.
type replay struct {
	Pool

	policy    Policy
	began     time.Time
	from, end time.Duration
	random    *rand.Rand
	result    *Result

	now    time.Duration
	events events
	// warm are the nodes with a placeholder, left those with room and none; ordered is how many are on their way, alive how
	// many there are with them, idle how many are ready and hold no Workspace.
	warm, left           []*node
	ordered, alive, idle int
	// pending is how many placeholders have no node that is ready, waiting are the Workspaces without one.
	pending int
	waiting []Start
}

// node is a node that is ready.
type node struct {
	placeholder bool
	// workspaces are on it, of which so many end some day.
	workspaces, ending int
	// emptied counts how often it got empty: a removal that was set off before is out of date.
	emptied int
	gone    bool
}

func (r *replay) run(starts []Start) {
	next := 0
	for tick := time.Duration(0); tick < r.end; tick += r.Step {
		for next < len(starts) && starts[next].At.Sub(r.began) < tick {
			r.until(starts[next].At.Sub(r.began))
			r.start(starts[next])
			next++
		}
		r.until(tick)
		r.keep(r.policy.Keep(r.began.Add(tick), r.alive))
	}
	for ; next < len(starts) && starts[next].At.Sub(r.began) < r.end; next++ {
		r.until(starts[next].At.Sub(r.began))
		r.start(starts[next])
	}
	r.until(r.end)
	for _, s := range r.waiting {
		r.result.wait(r.counts(s), r.end-s.At.Sub(r.began))
	}
	r.result.finish(r.end - r.from)
}

func (r *replay) counts(s Start) bool { return s.At.Sub(r.began) >= r.from }

// until lets pass what happens up to a time.
func (r *replay) until(t time.Duration) {
	for len(r.events) > 0 && r.events[0].at <= t {
		e := r.events.pop()
		r.pass(e.at)
		switch e.kind {
		case ready:
			r.ready()
		case ends:
			r.ends(e.node)
		case removal:
			if !e.node.gone && e.node.emptied == e.emptied && e.node.workspaces == 0 && !e.node.placeholder {
				r.remove(e.node)
			}
		}
	}
	r.pass(t)
}

func (r *replay) pass(t time.Duration) {
	if since := max(r.now, r.from); t > since {
		r.result.spend(t-since, r.idle, r.alive)
	}
	r.now = max(r.now, t)
}

// start finds a place for a Workspace: beside a placeholder, on a node that has lost its own, in the place of one. Else it waits.
func (r *replay) start(s Start) {
	n, evicts := r.find()
	if n != nil {
		r.policy.Started(s.At, true)
		r.result.found(r.counts(s), evicts)
		if evicts {
			r.evict(n)
			r.pending++
		}
		r.put(s, n)
	} else {
		r.policy.Started(s.At, false)
		r.waiting = append(r.waiting, s)
	}
	r.settle()
}

func (r *replay) find() (n *node, evicts bool) {
	for _, candidate := range r.warm { // the scheduler prefers the emptiest
		if candidate.workspaces < r.Beside && (n == nil || candidate.workspaces < n.workspaces) {
			n = candidate
		}
	}
	switch {
	case n != nil:
		return n, false
	case len(r.left) > 0:
		return r.left[0], false
	case len(r.warm) > 0:
		return r.warm[0], true
	default:
		return nil, false
	}
}

func (r *replay) put(s Start, n *node) {
	if n.workspaces == 0 {
		r.idle--
	}
	n.workspaces++
	if s.Stays > 0 {
		n.ending++
		r.events.push(event{at: max(r.now, s.At.Sub(r.began)) + s.Stays, kind: ends, node: n})
	}
	r.file(n)
}

// file puts a node where it belongs.
func (r *replay) file(n *node) {
	r.warm, r.left = without(r.warm, n), without(r.left, n)
	switch {
	case n.gone:
	case n.placeholder:
		r.warm = append(r.warm, n)
	case n.workspaces < r.Places:
		r.left = append(r.left, n)
	case n.ending == 0: // full for good
		n.gone = true
		r.alive--
	}
}

func without(nodes []*node, n *node) []*node {
	for i := range nodes {
		if nodes[i] == n {
			return append(nodes[:i], nodes[i+1:]...)
		}
	}
	return nodes
}

func (r *replay) evict(n *node) {
	n.placeholder = false
	r.file(n)
}

// ends is the end of a Workspace.
func (r *replay) ends(n *node) {
	n.workspaces--
	n.ending--
	if n.workspaces == 0 {
		r.idle++
		r.empty(n)
	}
	r.file(n)
	r.settle()
}

// empty has a node removed, if nothing comes to it in time.
func (r *replay) empty(n *node) {
	n.emptied++
	r.events.push(event{at: r.now + r.ConsolidateAfter, kind: removal, node: n, emptied: n.emptied})
}

func (r *replay) remove(n *node) {
	n.gone = true
	r.alive--
	r.idle--
	r.file(n)
	r.settle()
}
