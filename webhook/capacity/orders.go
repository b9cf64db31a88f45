package capacity

import (
	"iter"
	"math"
)

// Orders is how many nodes are on order: the starts of one lead time. It is a Poisson distribution, or, where the variance is
// above the mean, a negative binomial one: that of a Poisson rate which is not known exactly.
type Orders struct{ Mean, Variance float64 }

// leastMean and mostMean bound the arithmetic: nobody has so few or so many nodes on order.
const leastMean, mostMean = 1e-12, 1e5

// chances are P(N = n) for n from the first that matters.
func (o Orders) chances() iter.Seq2[int, float64] {
	mean := min(o.Mean, mostMean)
	if !(mean > leastMean) { // or no number
		return func(yield func(int, float64) bool) { yield(0, 1) }
	}
	variance := max(mean, min(o.Variance, mean*mostMean))
	first := math.Floor(max(0, mean-12*math.Sqrt(variance)))
	size, grow := math.Inf(1), mean // of a Poisson distribution, P(n+1) / P(n) = mean / (n+1)
	log := first*math.Log(mean) - mean
	if variance > mean*(1+1e-9) {
		size = mean * mean / (variance - mean)
		grow = mean / (size + mean)
		log = lnGamma(first+size) - lnGamma(size) + size*math.Log(size/(size+mean)) + first*math.Log(grow)
	}
	chance := math.Exp(log - lnGamma(first+1))
	last := mean + 40*math.Sqrt(variance) + 40
	return func(yield func(int, float64) bool) {
		for n := first; n <= last && yield(int(n), chance); n++ {
			next := grow / (n + 1)
			if !math.IsInf(size, 1) {
				next *= n + size
			}
			chance *= next
		}
	}
}

func lnGamma(x float64) float64 {
	value, _ := math.Lgamma(x)
	return value
}

// Hits is the share of starts that find a place where so many placeholders are kept: P(N ≤ places − 1).
func (o Orders) Hits(places int) float64 {
	hits := 0.0
	for n, chance := range o.chances() {
		if n >= places {
			break
		}
		hits += chance
	}
	return min(hits, 1)
}

// Places is how many placeholders to keep so that the objective's share of starts finds a place.
func (o Orders) Places(objective float64) int {
	return o.quantile(objective) + 1
}

// PlacesByPrice is how many placeholders cost least, where an hour that a Workspace waits costs waiting, and an hour of a node
// that no one uses costs idle: the least S with P(N ≤ S) ≥ waiting / (waiting + idle).
func (o Orders) PlacesByPrice(waiting, idle float64) int {
	if !(waiting > 0) {
		return 0
	}
	return o.quantile(waiting / (waiting + max(idle, 0)))
}

// PlacesByWorth is how many placeholders to keep where starts come at a rate, and one more is kept as long as it finds worth starts
// in each hour that it is idle; and the share of starts that find one.
func (o Orders) PlacesByWorth(rate, worth float64) (places int, hits float64) {
	for n, chance := range o.chances() {
		if rate*chance < worth*(hits+chance) {
			break
		}
		places, hits = n+1, hits+chance
	}
	return places, min(hits, 1)
}

// quantile is the least n with P(N ≤ n) ≥ share; the end of the distribution for a share that rounding keeps out of reach.
func (o Orders) quantile(share float64) int {
	sum, last := 0.0, 0
	for n, chance := range o.chances() {
		last = n
		if sum += chance; sum >= share {
			break
		}
	}
	return last
}

// Waiting is how many Workspaces wait on average, E[(N−S)⁺]; over the rate of starts it is the mean wait (Little's law).
func (o Orders) Waiting(places int) float64 {
	waiting := 0.0
	for n, chance := range o.chances() {
		waiting += float64(max(0, n-places)) * chance
	}
	return waiting
}

// Idle is how many warm nodes no one uses, on average: those kept, but for those on order.
func (o Orders) Idle(places int) float64 {
	return float64(places) - o.Mean + o.Waiting(places)
}
