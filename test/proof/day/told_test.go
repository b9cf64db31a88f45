package day_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/simulation"
)

// told waits until warmpool's metrics have all starts, and gives them by path.
func (r *replay) told(t *testing.T, count int) map[string]int {
	t.Helper()
	var paths map[string]int
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		paths = map[string]int{}
		total := 0
		for line := range strings.Lines(r.metrics(t)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !strings.HasPrefix(name, "warmpool_workspace_starts_total{") {
				continue
			}
			_, rest, _ := strings.Cut(name, `path="`)
			path, _, _ := strings.Cut(rest, `"`)
			n := 0
			_, err := fmt.Sscan(value, &n)
			require.NoError(t, err)
			paths[path] += n
			total += n
		}
		require.Equal(t, count, total)
	}, limit, step)
	return paths
}

const (
	// exact is how far warmpool may be off: it goes by times of the API server, which are whole seconds, and sees placeholders
	// come and go a little later.
	exact = 3 * time.Second
	// leaving is how long after a Workspace's binding a placeholder that leaves counts as having made room for it, and a
	// second for the same reason.
	leaving = 6 * time.Second
)

// agree holds what warmpool tells of the starts to what the simulation has seen: which were cold, by Workspace, and how
// many came to the place of a placeholder. Where a placeholder pulled or left about then, whole seconds cannot tell.
func (r *replay) agree(t *testing.T, sum *result) {
	t.Helper()
	cold := r.coldStarts(t, sum.Told[simulation.Cold])
	compared, unsure := 0, 0
	for _, s := range r.Book.Startups() {
		if s.Running.IsZero() {
			continue
		}
		if r.Book.Near(&s, leaving) {
			unsure++
		}
		if r.Book.Near(&s, exact) {
			continue
		}
		compared++
		assert.Equal(t, s.Path == simulation.Cold, cold[s.Pod], "cold: pod %s on %s came on path %s", s.Pod, s.Node, s.Path)
	}
	t.Logf("warmpool and the simulation agree on %d starts; %d are not sure to be no preemption", compared, unsure)
	assert.Greater(t, compared, len(sum.Starts)/5)
	assert.InDelta(t, sum.Paths[simulation.Preempt], sum.Told[simulation.Preempt], float64(unsure))
}

// coldStarts are the pods of the Events about cold starts, when there are so many.
func (r *replay) coldStarts(t *testing.T, count int) map[string]bool {
	t.Helper()
	var pods map[string]bool
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		var events corev1.EventList
		require.NoError(collect, r.Admin.List(t.Context(), &events, client.InNamespace(simulation.Team)))
		pods = map[string]bool{}
		for i := range events.Items {
			if events.Items[i].Reason == "ColdStart" {
				pods[events.Items[i].InvolvedObject.Name] = true
			}
		}
		require.Len(collect, pods, count)
	}, limit, step)
	return pods
}
