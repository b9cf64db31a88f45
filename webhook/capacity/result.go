package capacity

import (
	"slices"
	"time"
)

// Result is what became of the starts of a replay.
type Result struct {
	// Starts is how many there were. Beside found room beside a placeholder or on a node that had lost its own, InPlace took the
	// place of one; the others waited for a node.
	Starts, Beside, InPlace int
	// Idle is how many nodes were warm and held no Workspace, on average; NodeHours are those of all nodes, from the order.
	Idle, NodeHours float64
	// Waits are the times that those waited which found no place, the shortest first.
	Waits []time.Duration

	idleHours float64
}

// Hits is the share of starts that found a place.
func (r *Result) Hits() float64 {
	if r.Starts == 0 {
		return 1
	}
	return float64(r.Beside+r.InPlace) / float64(r.Starts)
}

// MeanWait is how long a start waited for a node, on average over all.
func (r *Result) MeanWait() time.Duration {
	if r.Starts == 0 {
		return 0
	}
	sum := 0.0
	for _, wait := range r.Waits {
		sum += wait.Seconds()
	}
	return time.Duration(sum / float64(r.Starts) * float64(time.Second))
}

// WaitAt is the wait that a share of all starts did not exceed.
func (r *Result) WaitAt(share float64) time.Duration {
	at := int(share*float64(r.Starts)) - (r.Starts - len(r.Waits))
	if at < 0 || len(r.Waits) == 0 {
		return 0
	}
	return r.Waits[min(at, len(r.Waits)-1)]
}

func (r *Result) found(counts, evicts bool) {
	switch {
	case !counts:
		return
	case evicts:
		r.InPlace++
	default:
		r.Beside++
	}
	r.Starts++
}

func (r *Result) wait(counts bool, wait time.Duration) {
	if counts {
		r.Starts++
		r.Waits = append(r.Waits, wait)
	}
}

func (r *Result) spend(time time.Duration, idle, alive int) {
	r.idleHours += time.Hours() * float64(idle)
	r.NodeHours += time.Hours() * float64(alive)
}

func (r *Result) finish(time time.Duration) {
	slices.Sort(r.Waits)
	r.Idle = r.idleHours / time.Hours()
}
