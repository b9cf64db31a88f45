// Package wake wakes the loops that follow the Evaluator.
package wake

// Signal wakes the one loop that receives from it; who embeds it has the method for webhook.Evaluators.Changed.
type Signal chan struct{}

// New makes a Signal that holds at most one change: who has not looked yet learns of several at once.
func New() Signal { return make(Signal, 1) }

// Changed tells that there is another Evaluator; it never blocks.
func (s Signal) Changed() {
	select {
	case s <- struct{}{}:
	default:
	}
}
