package capacity_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/capacity"
)

// By hand: P(N ≤ 1) of a Poisson distribution with mean 1 is 2/e; the negative binomial one with mean 1 and variance 2 is the
// number of tails before a head.
func TestHits(t *testing.T) {
	poisson, geometric := capacity.Orders{Mean: 1}, capacity.Orders{Mean: 1, Variance: 2}
	for places, want := range []float64{0, 1 / math.E, 2 / math.E, 2.5 / math.E} {
		assert.InDelta(t, want, poisson.Hits(places), 1e-12)
	}
	for places, want := range []float64{0, 0.5, 0.75, 0.875} {
		assert.InDelta(t, want, geometric.Hits(places), 1e-12)
	}
	assert.Equal(t, 1.0, capacity.Orders{}.Hits(1))
	assert.InDelta(t, 0.5, capacity.Orders{Mean: 5000, Variance: 5000}.Hits(5001), 0.01, "no number underflows")
}

func TestPlaces(t *testing.T) {
	for _, mean := range []float64{0.01, 0.7, 3, 42, 1000} {
		for _, variance := range []float64{0, 1.5 * mean, 10 * mean} {
			for _, objective := range []float64{0.5, 0.9, 0.95, 0.99} {
				orders := capacity.Orders{Mean: mean, Variance: variance}
				places := orders.Places(objective)
				assert.GreaterOrEqual(t, orders.Hits(places), objective, "%+v", orders)
				assert.Less(t, orders.Hits(places-1), objective, "%+v: one less is not enough", orders)
			}
		}
	}
}

// At the prices' number of places, neither one more nor one less costs less.
func TestPlacesByPrice(t *testing.T) {
	for _, mean := range []float64{0.3, 2, 17} {
		for _, waiting := range []float64{1, 10, 60} {
			orders := capacity.Orders{Mean: mean, Variance: 1.4 * mean}
			cost := func(places int) float64 { return waiting*orders.Waiting(places) + 5.4*orders.Idle(places) }
			best := orders.PlacesByPrice(waiting, 5.4)
			assert.LessOrEqual(t, cost(best), cost(best+1))
			if best > 0 {
				assert.LessOrEqual(t, cost(best), cost(best-1))
			}
		}
	}
	assert.Zero(t, capacity.Orders{Mean: 3}.PlacesByPrice(0, 5.4), "no one minds waiting")
}

// Numbers that no trace gives end all the same.
func TestOddOrders(t *testing.T) {
	for _, mean := range []float64{math.NaN(), -1, math.Inf(1), 1e300, 1e-300} {
		for _, variance := range []float64{0, math.NaN(), math.Inf(1), -1} {
			orders := capacity.Orders{Mean: mean, Variance: variance}
			t.Run(fmt.Sprint(orders), func(t *testing.T) {
				assert.GreaterOrEqual(t, orders.Places(0.95), 1)
				assert.LessOrEqual(t, orders.Hits(10), 1.0)
			})
		}
	}
}
