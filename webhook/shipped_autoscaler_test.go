package webhook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// The shipped autoscalers and placeholders are right by every rule about them, beside the nodes of the example cluster.
func TestShippedAutoscalersAreRight(t *testing.T) {
	for _, overlay := range []string{"../manifests/overlays/embedded", "../manifests/overlays/cert-manager"} {
		t.Run(filepath.Base(overlay), func(t *testing.T) {
			objects := exampleObjects(t, "nodes.yaml", "nodepools.yaml", "daemonsets.yaml", "templates.yaml")
			assert.Empty(t, autoscalerFindings(t, exampleConfig, append(objects, render(t, overlay)...)))
		})
	}
}

// What the public guide leaves in a cluster works, and is dear: its ratio of cores is one node's, and the manifest sets
// the replicas that CPA sets too. Nothing else of it is wrong.
func TestGuideAutoscalerIsDear(t *testing.T) {
	guide, err := manifest.Objects([]string{"testdata/guide-cpa.yaml"}, nil)
	require.NoError(t, err)
	placeholder, err := manifest.Objects([]string{"testdata/guide.yaml"}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"warning placeholder-replicas: set in the manifest, while CPA overprovisioning/spaces-overprovisioning-cpa sets them too: each apply undoes what it has set",
		"warning cpa-runaway: coresPerReplica 48 on nodes of 47.81 cores (nodes as configured) calls for 252 warm nodes for one other node; beside 1 other node the count settles at 5",
	}, autoscalerFindings(t, exampleConfig, append(guide, placeholder...)))
}

func exampleObjects(t *testing.T, files ...string) []manifest.Object {
	t.Helper()
	for i := range files {
		files[i] = filepath.Join(exampleCluster, files[i])
	}
	objects, err := manifest.Objects(files, nil)
	require.NoError(t, err)
	return objects
}

// autoscalerFindings are what an audit of the objects says about CPAs and the replicas of placeholders.
func autoscalerFindings(t *testing.T, configuration string, objects []manifest.Object) []string {
	t.Helper()
	text, err := os.ReadFile(configuration)
	require.NoError(t, err)
	cfg, err := config.Load(text, policy.IDs())
	require.NoError(t, err)
	facts, err := manifest.Snapshot(objects)
	require.NoError(t, err)
	e, err := policy.New(cfg, facts, time.Now())
	require.NoError(t, err)
	findings, judged := e.Audit()
	assert.NotZero(t, judged)
	var lines []string
	for i := range findings {
		if id := findings[i].Rule.ID; strings.HasPrefix(id, "cpa-") || id == "placeholder-replicas" {
			lines = append(lines, fmt.Sprintf("%s %s: %s", findings[i].Severity, id, findings[i].Error.Detail))
		}
	}
	return lines
}
