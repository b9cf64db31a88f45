package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/cluster"
)

func workload(t *testing.T, text string) *cluster.Workload {
	t.Helper()
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &content))
	return cluster.WorkloadFrom(content)
}

func TestWorkloadFrom(t *testing.T) {
	w := workload(t, `{kind: StatefulSet, metadata: {name: a, namespace: x, labels: {l: "1"}}, spec: {futureField: 1, template: {metadata: {labels: {p: "2"}}, spec: {priorityClassName: low}}}}`)
	require.NotNil(t, w)
	assert.Equal(t, "StatefulSet/x/a", w.Key())
	assert.Equal(t, map[string]string{"l": "1"}, w.Labels)
	assert.Equal(t, map[string]string{"p": "2"}, w.PodLabels)
	assert.Equal(t, "low", w.PodSpec.PriorityClassName)
	w = workload(t, `{kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: {priorityClassName: low}}}}}}`)
	require.NotNil(t, w)
	assert.Equal(t, "low", w.PodSpec.PriorityClassName)

	for name, text := range map[string]string{
		"controlled":     `{kind: ReplicaSet, metadata: {name: a, ownerReferences: [{kind: Deployment, name: d, controller: true}]}, spec: {template: {spec: {}}}}`,
		"no pods":        `{kind: Job, metadata: {name: a}}`,
		"unreadable":     `{kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: 3}}}}`,
		"no template":    `{kind: Job, metadata: {name: a}, spec: {template: x}}`,
		"metadata is no": `{kind: Job, metadata: x, spec: []}`,
	} {
		assert.Nil(t, workload(t, text), name)
	}
}
