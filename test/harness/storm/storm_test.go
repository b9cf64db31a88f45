package storm_test

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/storm"
)

const (
	limit = 90 * time.Second // for anything that is waited for
	step  = 50 * time.Millisecond
	edits = 10 // of each template
)

// Templates change all the time, and the leader is killed in the middle: the other replica takes over when the lease has
// expired, all placeholders end at the last images, and none was rolled out more often than its templates changed.
func TestStorm(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Log: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	layout := storm.Layout{Pools: 20, Templates: 1, Placeholders: 2}
	cluster, err := storm.Install(t.Context(), cp, layout)
	require.NoError(t, err)

	// As the endpoints of a Service would, the webhooks name a replica that lives: the other is the leader.
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	leader, err := cluster.Run(t.Context(), port)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return holder(t, cluster) != "" }, limit, step)
	killed := holder(t, cluster)
	follower, err := cluster.Run(t.Context(), cluster.Port)
	require.NoError(t, err)
	require.Regexp(t, isLeader, metrics(t, leader))
	require.NotRegexp(t, isLeader, metrics(t, follower))

	watch, err := storm.NewWatch(t.Context(), cp)
	require.NoError(t, err)
	require.NoError(t, cluster.Fill(t.Context()))
	allPull(t, layout, watch, 0)
	before := generations(layout, watch)

	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	for version := 1; version <= edits; version++ {
		if version == edits/2 {
			require.NoError(t, leader.Kill())
		}
		for pool := range layout.Pools {
			<-pace.C
			require.NoError(t, cluster.Edit(t.Context(), pool, 0, version))
		}
	}
	allPull(t, layout, watch, edits)
	assert.NotEqual(t, killed, holder(t, cluster), "another leads")
	assert.Regexp(t, isLeader, metrics(t, follower))
	for name, now := range generations(layout, watch) {
		assert.LessOrEqual(t, now-before[name], int64(edits), "rollouts of %s", name)
		assert.GreaterOrEqual(t, now-before[name], int64(1), "rollouts of %s", name)
	}
	log, err := os.ReadFile(follower.Log)
	require.NoError(t, err)
	assert.NotRegexp(t, `forbidden|panic|DATA RACE`, string(log))
}

var isLeader = regexp.MustCompile(`(?m)^leader_election_master_status\{name="warmpool"\} 1$`)

func holder(t *testing.T, cluster *storm.Cluster) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	err := cluster.Admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: "warmpool"}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func metrics(t *testing.T, w *install.Warmpool) string {
	t.Helper()
	text, err := install.Metrics(t.Context(), w.MetricsURL)
	require.NoError(t, err)
	return text
}

// allPull waits until every placeholder pulls the images of a version.
func allPull(t *testing.T, layout storm.Layout, watch *storm.Watch, version int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	require.NoError(t, watch.Until(ctx, func(get func(string) *appsv1.Deployment) bool {
		for pool := range layout.Pools {
			for i := range layout.Placeholders {
				if !storm.Pulls(get(storm.PlaceholderName(pool, i)), []string{storm.Image(pool, 0, version)}) {
					return false
				}
			}
		}
		return true
	}))
}

func generations(layout storm.Layout, watch *storm.Watch) map[string]int64 {
	all := map[string]int64{}
	for pool := range layout.Pools {
		for i := range layout.Placeholders {
			name := storm.PlaceholderName(pool, i)
			all[name] = watch.Get(name).Generation
		}
	}
	return all
}
