package sizing_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/sizing"
)

func TestReplicas(t *testing.T) {
	both := sizing.Linear{CoresPerReplica: 2, NodesPerReplica: 2.5, Min: 1, Max: 100, PreventSinglePointFailure: true}
	for _, c := range []struct {
		linear sizing.Linear
		nodes  int
		cores  float64
		want   int
	}{
		{sizing.Linear{NodesPerReplica: 10}, 0, 0, 1}, // linear cannot reach 0
		{sizing.Linear{NodesPerReplica: 10}, 10, 0, 1},
		{sizing.Linear{NodesPerReplica: 10}, 11, 0, 2},
		{sizing.Linear{NodesPerReplica: 10, Min: 2, Max: 4}, 1, 0, 2},
		{sizing.Linear{NodesPerReplica: 10, Min: 2, Max: 4}, 100, 0, 4},
		{sizing.Linear{CoresPerReplica: 96}, 9, 96.001, 2},
		{sizing.Linear{CoresPerReplica: 2, Min: 2, Max: 100}, 0, 21, 11},
		{sizing.Linear{NodesPerReplica: 10, Max: 1, PreventSinglePointFailure: true}, 2, 0, 2}, // over max
		{sizing.Linear{NodesPerReplica: 10, PreventSinglePointFailure: true}, 1, 0, 1},
		{sizing.Linear{NodesPerReplica: 1e-300}, 5, 0, math.MaxInt32},
		// From CPA's own tests.
		{both, 0, 0, 1}, {both, 2, 1, 2}, {both, 3, 2, 2}, {both, 4, 6, 3}, {both, 16, 8, 7}, {both, 21, 19, 10}, {both, 38, 26, 16}, {both, 20, 40, 20},
	} {
		assert.Equal(t, c.want, c.linear.Replicas(c.nodes, c.cores), "%+v at %d nodes, %g cores", c.linear, c.nodes, c.cores)
	}
}

func TestFixedPoint(t *testing.T) {
	for _, c := range []struct {
		linear  sizing.Linear
		other   int
		cores   float64
		want    int
		runaway bool
	}{
		{linear: sizing.Linear{NodesPerReplica: 10}, other: 20, want: 3},
		{linear: sizing.Linear{NodesPerReplica: 10, Min: 2, Max: 4}, other: 20, want: 3},
		{linear: sizing.Linear{NodesPerReplica: 10, Min: 2, Max: 4}, other: 100, want: 4},
		{linear: sizing.Linear{NodesPerReplica: 1, Min: 1}, other: 1, runaway: true},
		{linear: sizing.Linear{NodesPerReplica: 0.5, Min: 1}, other: 0, runaway: true},
		{linear: sizing.Linear{NodesPerReplica: 1, Min: 1}, other: 0, want: 1},
		{linear: sizing.Linear{NodesPerReplica: 1, Max: 50}, other: 1, want: 50, runaway: true},
		{linear: sizing.Linear{NodesPerReplica: 1, Max: 1, PreventSinglePointFailure: true}, other: 3, want: 2, runaway: true},
		{linear: sizing.Linear{CoresPerReplica: 8, Max: 50}, other: 1, cores: 8, want: 50, runaway: true},
		{linear: sizing.Linear{CoresPerReplica: 8}, other: 1, cores: 7.91, want: 88},
		{linear: sizing.Linear{CoresPerReplica: 16}, other: 7, cores: 8, want: 7},
		{linear: sizing.Linear{CoresPerReplica: 80, NodesPerReplica: 2}, other: 6, cores: 8, want: 6},
		{linear: sizing.Linear{CoresPerReplica: 8, NodesPerReplica: 10}, other: 6, cores: 8, runaway: true},
		{linear: sizing.Linear{CoresPerReplica: 16}, other: 7, cores: 0, want: 1},
		{linear: sizing.Linear{NodesPerReplica: 10, PreventSinglePointFailure: true}, other: 1, want: 2},
		{linear: sizing.Linear{NodesPerReplica: 10, PreventSinglePointFailure: true}, other: 0, want: 1},
		{linear: sizing.Linear{NodesPerReplica: 10, Max: 1, PreventSinglePointFailure: true}, other: 1, want: 2},
		{linear: sizing.Linear{NodesPerReplica: 2}, other: -3, want: 1},
		{linear: sizing.Linear{NodesPerReplica: 1 + 1e-12}, other: 5, want: math.MaxInt32},
	} {
		replicas, runaway := c.linear.FixedPoint(c.other, c.cores)
		assert.Equal(t, c.want, replicas, "%+v, %d others", c.linear, c.other)
		assert.Equal(t, c.runaway, runaway, "%+v, %d others", c.linear, c.other)
	}
}

// FuzzFixedPoint follows the loop of CPA and autoscaler step by step.
func FuzzFixedPoint(f *testing.F) {
	f.Add(uint16(100), uint16(0), uint8(20), uint8(0), uint8(0), false, uint16(80))
	f.Add(uint16(10), uint16(80), uint8(1), uint8(3), uint8(50), true, uint16(80))
	f.Add(uint16(0), uint16(81), uint8(1), uint8(0), uint8(0), true, uint16(80))
	f.Fuzz(func(t *testing.T, nodesRatio, coresRatio uint16, other, least, most uint8, prevent bool, cores uint16) {
		linear := sizing.Linear{
			NodesPerReplica: float64(nodesRatio) / 10, CoresPerReplica: float64(coresRatio) / 10,
			Min: int(least), Max: int(most), PreventSinglePointFailure: prevent,
		}
		if linear.Max != 0 && linear.Max < max(linear.Min, 1) || nodesRatio == 0 && coresRatio == 0 {
			return // CPA takes no such parameters
		}
		perNode := float64(cores) / 10
		count, steps := 0, 0
		for ; steps < 100_000 && count < math.MaxInt32; steps++ {
			nodes := int(other) + count
			next := linear.Replicas(nodes, float64(nodes)*perNode)
			if next == count {
				break
			}
			count = next
		}
		replicas, runaway := linear.FixedPoint(int(other), perNode)
		if runaway && linear.Max == 0 {
			assert.True(t, steps == 100_000 || count == math.MaxInt32, "%+v settles at %d", linear, count)
			return
		}
		assert.InDelta(t, count, replicas, 0, "%+v beside %d nodes of %g cores", linear, other, perNode)
	})
}

func TestRatiosDoNotRunAway(t *testing.T) {
	ratios := sizing.Ratios(20, 47.81)
	var counts []int
	for _, r := range ratios {
		replicas, runaway := r.FixedPoint(20, 47.81)
		assert.False(t, runaway)
		assert.Equal(t, replicas, r.Replicas)
		assert.GreaterOrEqual(t, r.Min, 2, "cpa-bounds warns of less")
		assert.Greater(t, r.Max, r.Replicas, "cpa-bounds warns of none, and it must not bind now")
		counts = append(counts, replicas)
	}
	assert.Equal(t, []int{20, 5, 3, 20, 5, 3}, counts)
	assert.Equal(t, "one warm node for every node in use", ratios[0].Why)
	assert.Equal(t, "one warm node for every 9 nodes in use", ratios[2].Why)
	assert.Equal(t, sizing.Linear{CoresPerReplica: 96, Min: 2, Max: 40, PreventSinglePointFailure: true}, ratios[3].Linear)
	assert.Equal(t, "one warm node for every node of 47.81 cores in use", ratios[3].Why)
	assert.Len(t, sizing.Ratios(0, 0), 3, "without known cores only by nodes")
}

// FromAbove is held to the loop of CPA and autoscaler, from far above.
func TestFromAbove(t *testing.T) {
	for _, c := range []struct {
		linear sizing.Linear
		other  int
		want   int
	}{
		{sizing.Linear{NodesPerReplica: 4, Min: 1, PreventSinglePointFailure: true}, 1, 2},
		{sizing.Linear{NodesPerReplica: 4, Min: 1, PreventSinglePointFailure: true}, 0, 2},
		{sizing.Linear{NodesPerReplica: 4, Min: 1}, 1, 1},
		{sizing.Linear{NodesPerReplica: 2, Min: 2}, 2, 3},
		{sizing.Linear{NodesPerReplica: 10, Min: 2}, 20, 3},
		{sizing.Linear{NodesPerReplica: 1, Min: 1}, 1, 0},
		{sizing.Linear{NodesPerReplica: 1, Min: 1, Max: 7}, 1, 7},
		{sizing.Linear{CoresPerReplica: 16, Min: 1, Max: 50}, 3, 4},
	} {
		got := c.linear.FromAbove(c.other, 8)
		assert.Equal(t, c.want, got, c)
		if _, runaway := c.linear.FixedPoint(c.other, 8); !runaway {
			replicas := 1000
			for range 1000 {
				nodes := c.other + replicas
				replicas = min(replicas, c.linear.Replicas(nodes, float64(nodes)*8))
			}
			assert.Equal(t, replicas, got, c)
		}
	}
}
