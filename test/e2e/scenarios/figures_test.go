package scenarios_test

import (
	"slices"
	"testing"
	"time"

	"warmpool.sh/test/harness/simulation"
)

// figures logs how Workspaces started: medians from creation to the node, and to running.
func (l *lab) figures(t *testing.T, starts []simulation.Startup) {
	t.Helper()
	paths := map[string]int{}
	var bound, running []time.Duration
	pulled, booted := 0, 0
	for _, s := range starts {
		paths[s.Path]++
		bound, running = append(bound, s.Bound.Sub(s.Created)), append(running, s.Running.Sub(s.Created))
		if s.Pulled {
			pulled++
		}
		if s.Booted {
			booted++
		}
	}
	t.Logf("%d Workspaces (%d coexist, %d preempt, %d cold): created to bound %s, to Running %s; %d pulls, %d on new nodes, %d evictions",
		len(starts), paths[simulation.Coexist], paths[simulation.Preempt], paths[simulation.Cold],
		median(bound), median(running), pulled, booted, len(l.Book.Evictions())-l.before)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(time.Millisecond)
}
