// Package scenarios_test plays, on the cluster of package simulation, what happens to a warm pool one thing at a time:
// bursts, limits, drains, zones, pods that are none of its business. Each scenario asserts what the cluster said and logs
// its figures in one line; these are of compressed time.
package scenarios_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/simulation"
)

var long = flag.Bool("long", false, "play 200 nodes with 500 Workspaces too")

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// One cluster plays all scenarios, one after another: each begins with warm nodes alone.
func TestScenarios(t *testing.T) {
	needs.Check(t, needs.ControlPlane, simulation.Ready(t.Context()))
	c, err := simulation.Start(t.Context(), simulation.Options{
		Warmpool: true, Log: t.Output(),
		Delays: simulation.Delays{Boot: 2 * time.Second, Start: 100 * time.Millisecond, PullGB: 250 * time.Millisecond, Scale: 200 * time.Millisecond},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	l := &lab{Cluster: c}
	l.nodePool(t, "spaces-cpu", `{"disruption": {"consolidateAfter": "Never"}, "template": {"spec": {"requirements": [
		{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.m5.4xlarge", "ml.m5d.4xlarge"]}]}}}`)
	for _, s := range []struct {
		name string
		play func(*lab, *testing.T)
	}{
		{"burst that fits beside", (*lab).burstBeside},
		{"burst that has to preempt", (*lab).burstInPlace},
		{"refill after preemption", (*lab).refill},
		{"pool at its limit", (*lab).limit},
		{"drained nodes", (*lab).drain},
		{"unmanaged pods", (*lab).unmanaged},
		{"zone of a volume", (*lab).zone},
		{"pool of its own", (*lab).ownPool},
		{"GPU Workspace", (*lab).gpu},
		{"scale to zero and back", (*lab).zero},
		{"200 nodes", (*lab).many},
	} {
		began := time.Now()
		t.Run(s.name, func(t *testing.T) { s.play(l, t) })
		t.Logf("%s: %.1f s", s.name, time.Since(began).Seconds())
	}
	log, err := os.ReadFile(c.Warmpool.Log)
	require.NoError(t, err)
	for _, bad := range []string{"panic", "forbidden", "DATA RACE"} {
		assert.NotContains(t, strings.ToValidUTF8(string(log), ""), bad, "the log of warmpool")
	}
}
