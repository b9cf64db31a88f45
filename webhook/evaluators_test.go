package webhook_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

func TestEvaluatorNeedsConfigurationAndFacts(t *testing.T) {
	cfg, facts := exampleInputs(t, "")
	var evaluators webhook.Evaluators
	assert.Nil(t, evaluators.Current())
	require.NoError(t, evaluators.Configure(cfg))
	assert.Nil(t, evaluators.Current(), "facts are missing")
	require.NoError(t, evaluators.Observe(facts))
	first := evaluators.Current()
	require.NotNil(t, first)
	require.NoError(t, evaluators.Observe(facts))
	assert.NotSame(t, first, evaluators.Current(), "an Evaluator is never changed, but replaced")
}

// A configuration that makes no Evaluator leaves everything as it was, the facts that come later too.
func TestConfigurationThatCannotBeUsed(t *testing.T) {
	good, facts := exampleInputs(t, "")
	bad := *good
	bad.Workspaces.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	bad.Pools = nil
	var seen map[string][]*corev1.Node
	evaluators := webhook.Evaluators{Seen: func(pools map[string][]*corev1.Node) { seen = pools }}
	require.NoError(t, evaluators.Configure(good))
	require.NoError(t, evaluators.Observe(facts))
	first := evaluators.Current()

	require.ErrorContains(t, evaluators.Configure(&bad), "Near")
	assert.Same(t, first, evaluators.Current())
	seen = nil
	require.NoError(t, evaluators.Observe(facts))
	assert.NotSame(t, first, evaluators.Current())
	assert.NotEmpty(t, seen["gpu"], "the pools are still those of the good configuration")
}

// A sizing rule must follow the nodes, and whoever remembers them must be told of them.
func TestEvaluatorFollowsNodes(t *testing.T) {
	cfg, facts := exampleInputs(t, "")
	var seen map[string][]*corev1.Node
	evaluators := webhook.Evaluators{Seen: func(pools map[string][]*corev1.Node) { seen = pools }}
	require.NoError(t, evaluators.Configure(cfg))
	require.NoError(t, evaluators.Observe(facts))
	require.NotEmpty(t, seen["gpu"])
	name := seen["gpu"][0].Name

	smaller := *facts
	node := facts.Nodes.Get(name).DeepCopy()
	node.Labels[corev1.LabelInstanceTypeStable] = "ml.new.type"
	smaller.Nodes = facts.Nodes.With(map[string]*corev1.Node{name: node})
	require.NoError(t, evaluators.Observe(&smaller))
	var types []string
	for _, node := range seen["gpu"] {
		types = append(types, node.Labels[corev1.LabelInstanceTypeStable])
	}
	assert.Contains(t, types, "ml.new.type")
}

// An exemption ends by itself, on the day after its last, without any other change.
func TestExemptionEnds(t *testing.T) {
	cfg, facts := exampleInputs(t, `
exemptions:
- {rules: [placeholder-anti-affinity], namespace: warm, name: ph, reason: "single-node test pool", until: 2000-01-02}
`)
	synctest.Test(t, func(t *testing.T) { // its clock starts at 2000-01-01
		var evaluators webhook.Evaluators
		require.NoError(t, evaluators.Configure(cfg))
		require.NoError(t, evaluators.Observe(facts))
		exempt := evaluators.Current()
		time.Sleep(48*time.Hour - time.Second)
		synctest.Wait()
		assert.Same(t, exempt, evaluators.Current(), "the last day counts")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.NotSame(t, exempt, evaluators.Current())
	})
}

func exampleInputs(t *testing.T, more string) (*config.WarmPoolConfiguration, *cluster.Snapshot) {
	t.Helper()
	data, err := os.ReadFile(exampleConfig)
	require.NoError(t, err)
	cfg, err := config.Load(append(data, more...), policy.IDs())
	require.NoError(t, err)
	facts, _, err := manifest.Read([]string{exampleCluster}, nil)
	require.NoError(t, err)
	return cfg, facts
}
