package poolview_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/poolview"
	"warmpool.sh/webhook/sizing"
)

// views are those of the cluster that the page of the audit is tested with.
func views(t *testing.T) []*poolview.View {
	t.Helper()
	folder := filepath.Join("..", "audit", "testdata", "page")
	facts, _, err := manifest.Read([]string{filepath.Join(folder, "cluster.yaml")}, nil)
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(folder, "warmpool.yaml"))
	require.NoError(t, err)
	cfg, err := config.Load(data, policy.IDs())
	require.NoError(t, err)
	e, err := policy.New(cfg, facts, time.Unix(0, 0))
	require.NoError(t, err)
	return poolview.Of(e)
}

func TestViewNodes(t *testing.T) {
	all := views(t)
	require.Len(t, all, 3)
	assert.EqualValues(t, "cpu", all[0].Resource)
	assert.Equal(t, 1, all[0].WaitingPlaceholders)
	var lines []string
	for _, g := range all[0].Nodes {
		lines = append(lines, fmt.Sprint(g.Names, " ", g.State, " ", g.Images, " of ", g.Allocatable.String(), ": ", g.Daemons.String(), " ",
			len(g.Workspaces), " ", g.Placeholder.String(), ", threshold ", g.Threshold.String()))
	}
	assert.Equal(t, []string{
		"[cpu-1] warm unknown of 8: 500m 2 2, threshold 5500m",
		"[cpu-2] warming stale of 8: 500m 0 2, threshold 5500m",
		"[cpu-3 cpu-4] empty  of 8: 500m 0 0, threshold 5500m",
		"[cpu-5] out  of 4: 500m 0 0, threshold 1500m",
	}, lines)
	assert.Equal(t, "2500m", all[0].Nodes[0].Workspaces[0].String(), "the largest first")

	gpu := all[1].Nodes
	require.Len(t, gpu, 1)
	assert.EqualValues(t, "nvidia.com/gpu", all[1].Resource, "of it a default Workspace takes most of a node")
	assert.Equal(t, poolview.NodePlanned, gpu[0].State)
	assert.Equal(t, "1", gpu[0].Threshold.String())
	assert.Empty(t, all[2].Nodes)
	assert.NotEmpty(t, all[2].Unknown)
}

func TestViewImages(t *testing.T) {
	all := views(t)
	require.Len(t, all[0].Images, 2)
	assert.Equal(t, []string{"overprovisioning/cpu"}, all[0].Images[0].PulledBy)
	assert.Contains(t, all[0].Images[1].Problem, "does not exist")
	require.Len(t, all[1].Images, 2)
	assert.Equal(t, []string{"overprovisioning/gpu"}, all[1].Images[0].MissingIn)
	assert.Equal(t, poolview.Image{Image: "registry.example/notebook:1-gpu", PulledBy: []string{"overprovisioning/gpu"}}, all[1].Images[1])
}

func TestViewCurve(t *testing.T) {
	require.Len(t, views(t)[0].Curves, 1)
	c := views(t)[0].Curves[0]
	require.Empty(t, c.Problem)
	linear := sizing.Linear{CoresPerReplica: 16, Min: 2, Max: 6}
	assert.Equal(t, 2, c.Others, "nodes without placeholder; the cordoned one does not count")
	settled, runaway := linear.FixedPoint(c.Others, 8)
	assert.Equal(t, settled, c.Settled)
	assert.Equal(t, runaway, c.Runaway)
	for _, p := range c.Points {
		assert.Equal(t, linear.Replicas(p.Nodes, float64(p.Nodes)*8), p.Replicas, "%d nodes", p.Nodes)
	}
	assert.Greater(t, c.Points[len(c.Points)-1].Nodes, c.Others+c.Settled, "the point where it settles is on the curve")
}
