package scaling

import (
	"fmt"
	"time"

	"warmpool.sh/webhook/policy"
)

// Reasons for which a pool does not have the size that its demand asks for, as metrics and Events name them.
const (
	heldByPulls   = "pulls"   // images cannot be pulled: each node more would cost, and be no good
	heldByLimit   = "limit"   // the limits of the NodePools leave no more nodes
	heldByPending = "pending" // placeholders got no node, and no limit says why
	heldByScaler  = "scaler"  // somebody else sets the replicas
	heldByNothing = ""
)

var heldReasons = []string{heldByPulls, heldByLimit, heldByPending, heldByScaler}

const (
	// patience is how long placeholders may be without a node, or twice the longest lead time.
	patience = 10 * time.Minute
	// firstRetry is when to ask once more for nodes that did not come, lastRetry how long that may become.
	firstRetry, lastRetry = 15 * time.Minute, time.Hour
)

// decision is the size of a pool, and why it is not what the demand asks for.
type decision struct {
	size   int
	reason string
	why    string
}

// situation is what a decision goes by.
type situation struct {
	*placeholders

	now time.Time
	// wanted is what the demand asks for, least what is kept until more is known of it.
	wanted, least int
	longest       time.Duration // lead time
	// room is how many nodes more there may be; nil: nothing limits them.
	room *int
	// limits says the limits, in words.
	limits string
}

// retry remembers nodes that did not come.
type retry struct {
	until time.Time // no more is asked for
	wait  time.Duration
}

// decide caps what is wanted by what can be had.
func (r *retry) decide(s *situation) decision {
	d := decision{size: max(s.wanted, s.least)}
	if s.failed > 0 && d.size > s.replicas {
		d = decision{s.replicas, heldByPulls, fmt.Sprintf("images cannot be pulled on %d of %s: no more are added until they can", s.failed, count(s.bound, "node"))}
	}
	if s.room != nil && d.size > s.bound+*s.room {
		d = decision{s.bound + *s.room, heldByLimit, fmt.Sprintf("placeholders have %s, and %s leave %s more", count(s.bound, "node"), s.limits, count(*s.room, "node"))}
	}
	r.notice(s)
	if s.now.Before(r.until) && d.size > s.bound {
		d = decision{s.bound, heldByPending, fmt.Sprintf("placeholders got no node for %s though no limit forbids one; asked for again at %s",
			max(patience, 2*s.longest).Round(time.Minute), r.until.UTC().Format("15:04 MST"))}
	}
	return d
}

// notice cuts a pool back to what has a node once others have been without one for long, and asks again later.
func (r *retry) notice(s *situation) {
	if s.pending == 0 && !s.now.Before(r.until) {
		if s.replicas > 0 && s.bound >= s.wanted {
			r.wait = 0
		}
		return
	}
	if s.now.Before(r.until) || s.waited <= max(patience, 2*s.longest) {
		if r.until.Sub(s.now) > lastRetry { // the clock was put back
			r.until = time.Time{}
		}
		return
	}
	r.wait = min(max(2*r.wait, firstRetry), lastRetry)
	r.until = s.now.Add(r.wait)
}

// count is a number of things in words.
func count(n int, one string) string {
	switch n {
	case 0:
		return "no " + one + "s"
	case 1:
		return "1 " + one
	default:
		return fmt.Sprintf("%d %ss", n, one)
	}
}

// share gives each of several placeholder Deployments its part of a size, the first ones one more.
func share(size, deployments int) []int {
	parts := make([]int, deployments)
	for i := range parts {
		parts[i] = size / deployments
		if i < size%deployments {
			parts[i]++
		}
	}
	return parts
}

// next is the Deployment to scale now, and to what: the one that is farthest from its part. changes is false where none is.
func next(p *placeholders, size int) (index, replicas int, changes bool) {
	for i, part := range share(size, len(p.deployments)) {
		have := int(policy.ReplicasOf(p.deployments[i]))
		if have != part && (!changes || distance(have, part) > distance(int(policy.ReplicasOf(p.deployments[index])), replicas)) {
			index, replicas, changes = i, part, true
		}
	}
	return index, replicas, changes
}

func distance(a, b int) int { return max(a-b, b-a) }
