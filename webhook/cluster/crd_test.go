package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

func TestNodePoolFrom(t *testing.T) {
	pool, err := cluster.NodePoolFrom(content(t, `
apiVersion: karpenter.sh/v9
kind: NodePool
metadata: {name: gpu-a, uid: 7, annotations: {a: 1}}
spec:
  limits: {cpu: ten}
  template:
    metadata: {labels: {team: ml}}
    spec:
      nodeClassRef: {group: karpenter.sagemaker.amazonaws.com, kind: HyperpodNodeClass, name: x}
      expireAfter: 720h
      taints:
      - {key: nvidia.com/gpu, value: "true", effect: NoSchedule, novelty: 1}
      startupTaints:
      - {key: example.com/starting, effect: NoExecute}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [ml.p5.48xlarge], minValues: 1}
      - {key: karpenter.k8s.aws/instance-gpu-count, operator: Gte, values: ["4"]}
status: {resources: 5}
`))
	require.NoError(t, err, "what warmpool does not read must not matter")
	assert.Equal(t, &cluster.NodePool{
		Name:          "gpu-a",
		Labels:        map[string]string{"team": "ml"},
		Taints:        []corev1.Taint{{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		StartupTaints: []corev1.Taint{{Key: "example.com/starting", Effect: corev1.TaintEffectNoExecute}},
		Requirements: []corev1.NodeSelectorRequirement{
			{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"ml.p5.48xlarge"}},
			{Key: "karpenter.k8s.aws/instance-gpu-count", Operator: "Gte", Values: []string{"4"}},
		},
	}, pool)
}

func TestCustomObjectsWithoutContent(t *testing.T) {
	for _, text := range []string{`{}`, `spec: null`, `metadata: {name: ""}`, `spec: {template: null}`} {
		pool, err := cluster.NodePoolFrom(content(t, text))
		require.NoError(t, err)
		assert.Equal(t, &cluster.NodePool{}, pool)
		template, err := cluster.WorkspaceTemplateFrom(content(t, text))
		require.NoError(t, err)
		assert.Equal(t, &cluster.WorkspaceTemplate{}, template)
	}
	_, err := cluster.NodePoolFrom(nil)
	require.NoError(t, err)
}

func TestNodePoolFromNamesTheField(t *testing.T) {
	tests := map[string]string{
		`spec: 5`: "read NodePool: spec: got a value of type number, want an object (key: value)",
		`spec: {template: {spec: {taints: [{key: a}, {key: b, value: true}]}}}`:   "read NodePool: spec.template.spec.taints[1].value: got a value of type bool, want a string (put the value in quotes)",
		`spec: {template: {spec: {taints: {key: a}}}}`:                            "read NodePool: spec.template.spec.taints: got a value of type object, want a list (- value)",
		`spec: {template: {spec: {requirements: [{key: a, values: [1]}]}}}`:       "read NodePool: spec.template.spec.requirements[0].values[0]: got a value of type number, want a string (put the value in quotes)",
		`spec: {template: {metadata: {labels: {team: 1}}}}`:                       "read NodePool: spec.template.metadata.labels.team: got a value of type number, want a string (put the value in quotes)",
		`spec: {template: {spec: {startupTaints: [{key: a, timeAdded: "now"}]}}}`: `read NodePool: spec.template.spec.startupTaints[0].timeAdded: parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"`,
	}
	for text, want := range tests {
		_, err := cluster.NodePoolFrom(content(t, text))
		assert.EqualError(t, err, want)
	}
}

func TestWorkspaceTemplateFrom(t *testing.T) {
	template, err := cluster.WorkspaceTemplateFrom(content(t, `
metadata: {name: gpu, namespace: shared}
spec: {defaultImage: example.com/gpu:1, allowedImages: [example.com/gpu:1, example.com/gpu:2], displayName: 7, novelty: {}}
`))
	require.NoError(t, err)
	assert.Equal(t, &cluster.WorkspaceTemplate{
		Namespace: "shared", Name: "gpu", DefaultImage: "example.com/gpu:1",
		AllowedImages: []string{"example.com/gpu:1", "example.com/gpu:2"},
	}, template)

	_, err = cluster.WorkspaceTemplateFrom(content(t, `spec: {defaultImage: [a]}`))
	assert.EqualError(t, err, "read WorkspaceTemplate: spec.defaultImage: got a value of type array, want a string (put the value in quotes)")
}
