package scaling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/policy"
)

var one = []string{"a"}

// A working day: the pool is there before 8, small again after 18, and hits are as promised; nothing is written at rest.
func TestADay(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 0, max: 9}", one, func(r *rig) {
		r.knows(learned(12, time.Now()))
		r.pass(45 * time.Minute)
		assert.Equal(t, 0, r.replicas())
		r.pass(15 * time.Minute)
		assert.Greater(t, r.warm(), 1, "at 8")
		found, all := 0, 0
		for range 10 * 12 {
			r.pass(5 * time.Minute)
			all++
			if r.start() {
				found++
			}
			if all%12 == 0 {
				r.end()
			}
		}
		assert.GreaterOrEqual(t, float64(found)/float64(all), 0.93)
		r.pass(80 * time.Minute)
		assert.Equal(t, 0, r.replicas())
		writes := len(r.scales)
		assert.Less(t, writes, 40)
		r.pass(4 * time.Hour)
		assert.Len(t, r.scales, writes, "at night")
		r.spaced()
		assert.Less(t, len(r.events), 20)
		assert.Contains(t, r.events[0], "PoolResized: pool cpu has 0 placeholders, not 1: other weeks let expect 0.0 starts an hour now")
		assert.Empty(t, r.logs)
	})
}

// What is only recommended is told, and nothing is written but what is known.
func TestRecommend(t *testing.T) {
	inBubble(t, "{}", one, func(r *rig) {
		r.knows(learned(12, time.Now()))
		r.pass(2 * time.Hour)
		assert.Empty(t, r.scales)
		assert.Equal(t, 1, r.replicas())
		assert.NotEmpty(t, r.events)
		assert.LessOrEqual(t, len(r.events), 2)
		assert.Contains(t, r.events[len(r.events)-1], "PoolSizeRecommended: pool cpu should have")
	})
}

// Three placeholders share a size evenly, one write at a time.
func TestSeveralPlaceholders(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 8, max: 9}", []string{"zone-a", "zone-b", "zone-c"}, func(r *rig) {
		r.pass(5 * time.Minute)
		assert.Equal(t, []int{3, 3, 2}, []int{int(policy.ReplicasOf(r.deployments["zone-a"])), int(policy.ReplicasOf(r.deployments["zone-b"])), int(policy.ReplicasOf(r.deployments["zone-c"]))})
		assert.Len(t, r.scales, 3)
		r.spaced()
	})
}

// Nobody knows yet how many are needed: the pool keeps what it had, and grows by what comes.
func TestNothingIsKnown(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 0, max: 9}", one, func(r *rig) {
		r.set("a", "kubectl", 2)
		r.deployments["a"].ManagedFields = nil
		r.pass(5 * time.Hour)
		assert.Equal(t, 2, r.replicas())
		assert.Empty(t, r.scales)
		assert.NotNil(t, r.configMap)
		r.lead0() // remembers it
		r.pass(time.Hour)
		assert.Equal(t, 2, r.replicas())
		for range 60 {
			r.start()
			r.pass(time.Minute)
		}
		r.pass(time.Minute) // the hour is over
		assert.Greater(t, r.replicas(), 2)
	})
}

// A burst that no history knows: more are ordered at once, and an hour later the pool is as before.
func TestBurst(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 1, max: 60}", one, func(r *rig) {
		r.knows(learned(12, time.Now()))
		r.pass(3*time.Hour + 30*time.Minute)
		before := r.replicas()
		for range 40 {
			r.start()
		}
		r.pass(time.Minute)
		assert.Greater(t, r.replicas(), 2*before)
		r.pass(12 * time.Minute)
		assert.True(t, r.start(), "two lead times later")
		r.pass(65 * time.Minute)
		assert.LessOrEqual(t, r.replicas(), before+2)
		r.spaced()
	})
}

// Nodes that take three times as long are reckoned with within the hour, at the first of them.
func TestLeadTimeTriples(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 1, max: 60}", one, func(r *rig) {
		r.knows(learned(12, time.Now()))
		r.pass(3 * time.Hour)
		for range 20 {
			r.start()
			r.pass(5 * time.Minute)
		}
		before := r.replicas()
		mean, _ := r.controller.pools["cpu"].demand.LeadTime(r.controller.pools["cpu"].settings)
		assert.InDelta(t, 6, mean.Minutes(), 0.5)
		r.lead = 18 * time.Minute
		for range 11 {
			r.start()
			r.pass(5 * time.Minute)
		}
		mean, _ = r.controller.pools["cpu"].demand.LeadTime(r.controller.pools["cpu"].settings)
		assert.InDelta(t, 17, mean.Minutes(), 2)
		assert.Greater(t, r.replicas(), before+2)
		r.spaced()
	})
}

// While pulls fail the pool does not grow, and says so; it goes on by itself.
func TestPullsFail(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 2, max: 9}", one, func(r *rig) {
		r.knows(learned(12, time.Now()))
		r.failing = true
		r.pass(30 * time.Minute)
		stuck := r.replicas()
		assert.Equal(t, 2, stuck)
		r.pass(time.Hour)
		assert.Equal(t, stuck, r.replicas(), "though it is past 8")
		require.NotEmpty(t, r.events)
		assert.Contains(t, r.events[len(r.events)-1], "PoolHeld: pool cpu: ")
		assert.Contains(t, r.events[len(r.events)-1], "images cannot be pulled on 2 of 2 nodes: no more are added until they can")
		r.failing = false
		r.pass(2 * time.Minute)
		assert.Greater(t, r.replicas(), stuck)
		r.spaced()
	})
}
