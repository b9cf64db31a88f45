package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// checkPlacement has the scheduler look for a node of the pool cpu for pods of which placement says that they can run there, and
// for others of which it says that they cannot.
func (c *testCluster) checkPlacement(t *testing.T) {
	cfg := &config.WarmPoolConfiguration{Pools: []config.Pool{{Name: "cpu", NodePools: []string{"cpu"}}}}
	config.SetDefaults(cfg)
	facts := *c.facts
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	facts.NodePools = cluster.Known(map[string]*cluster.NodePool{"cpu": {
		Name: "cpu", Requirements: []corev1.NodeSelectorRequirement{
			requirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "ml.m5.12xlarge"),
			requirement("cores", corev1.NodeSelectorOpLt, "17"), requirement("old", corev1.NodeSelectorOpDoesNotExist),
		},
	}})
	sizes := sizing.NewTracker(cfg).Update(&facts)
	pool := placement.Compile(cfg, &facts, placement.Seen{
		Labels:     func(pool string) map[string]cluster.NodeLabels { return sizes.Pool(pool).Labels },
		ByHostname: sizes.ByHostname,
	}).Get("cpu")
	for name, test := range map[string]struct {
		term     corev1.NodeSelectorTerm
		conflict bool
	}{
		"type of the pool":         {expressions(requirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "ml.m5.12xlarge", "x")), false},
		"another type":             {expressions(requirement(corev1.LabelInstanceType, corev1.NodeSelectorOpIn, "ml.c5.large")), true},
		"not the type":             {expressions(requirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpNotIn, "ml.m5.12xlarge")), true},
		"architecture of nodes":    {expressions(requirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")), false},
		"another architecture":     {expressions(requirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "arm64")), true},
		"interval without numbers": {expressions(requirement("cores", corev1.NodeSelectorOpGt, "16")), true},
		"label that must not be":   {expressions(requirement("old", corev1.NodeSelectorOpExists)), true},
		"label that may be absent": {expressions(requirement("old", corev1.NodeSelectorOpNotIn, "x")), false},
		"against itself":           {expressions(requirement("z", corev1.NodeSelectorOpExists), requirement("z", corev1.NodeSelectorOpDoesNotExist)), true},
		"host of the pool":         {expressions(requirement(corev1.LabelHostname, corev1.NodeSelectorOpIn, "cpu-0")), false},
		"host of another pool":     {expressions(requirement(corev1.LabelHostname, corev1.NodeSelectorOpIn, "gpu-xlarge-0")), true},
		"node of the pool":         {fields("cpu-1"), false},
		"node of another pool":     {fields("gpu-xlarge-0"), true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf("default", corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}, map[string]string{poolLabel: "cpu"})
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{test.term}},
			}}
			assert.Equal(t, test.conflict, pool.Fit(&pod.Spec).Conflict)
			got := c.decide(t, pod)
			assert.Equal(t, test.conflict, got.node == "", "%s %s", got.node, got.message)
		})
	}
}

func expressions(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: requirements}
}

func fields(node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}
}
