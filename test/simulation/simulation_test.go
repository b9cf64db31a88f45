package simulation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

	"warmpool.sh/test/simulation"
)

const limit = 2 * time.Minute // for anything that is waited for

func newCluster(t *testing.T, opts simulation.Options) *simulation.Cluster {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	opts.Log = t.Output()
	c, err := simulation.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	return c
}

// Three Workspaces come at once, and there are warm nodes for all of them.
func TestBurstOnWarmNodes(t *testing.T) {
	c := newCluster(t, simulation.Options{Warmpool: true})
	require.NoError(t, c.Warm(t.Context(), limit, "cpu", simulation.CPUImage))
	var names []string
	for i := range 3 {
		w := simulation.Workspace{Name: fmt.Sprintf("burst-%d", i), Kind: "cpu", Image: simulation.CPUImage, CPU: 4}
		names = append(names, w.Name)
		require.NoError(t, c.Create(t.Context(), w))
	}
	starts, err := c.WaitRunning(t.Context(), limit, names...)
	require.NoError(t, err)
	for _, s := range starts {
		t.Logf("%+v: bound after %s, running after %s", s, s.Bound.Sub(s.Created), s.Running.Sub(s.Created))
		assert.Equal(t, simulation.Coexist, s.Path)
		assert.True(t, s.Warm())
		assert.True(t, s.OnWarm)
		assert.False(t, s.Outside)
	}
	assert.Empty(t, c.Book.Evictions())
}
