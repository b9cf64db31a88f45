package cluster_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
		APIVersion:    "karpenter.sh/v9",
		Labels:        map[string]string{"team": "ml"},
		Taints:        []corev1.Taint{{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		StartupTaints: []corev1.Taint{{Key: "example.com/starting", Effect: corev1.TaintEffectNoExecute}},
		Requirements: []corev1.NodeSelectorRequirement{
			{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"ml.p5.48xlarge"}},
			{Key: "karpenter.k8s.aws/instance-gpu-count", Operator: "Gte", Values: []string{"4"}},
		},
		Problem: "spec.limits.cpu: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
	}, pool)
}

func TestNodePoolLifecycle(t *testing.T) {
	pool, err := cluster.NodePoolFrom(content(t, `
metadata: {name: gpu-a}
spec:
  limits: {cpu: "100", nvidia.com/gpu: 8}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5m, budgets: [{nodes: "0", reasons: [Underutilized]}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.sagemaker.amazonaws.com, kind: HyperpodNodeClass, name: x}
      expireAfter: 720h
      terminationGracePeriod: 1h
status:
  conditions:
  - {type: ValidationSucceeded, status: "True"}
  - {type: Ready, status: "False", reason: NodeClassNotReady, message: no subnet}
`))
	require.NoError(t, err)
	assert.Equal(t, &cluster.NodePool{
		Name:        "gpu-a",
		NodeClass:   cluster.NodeClassRef{Group: "karpenter.sagemaker.amazonaws.com", Kind: "HyperpodNodeClass", Name: "x"},
		Limits:      corev1.ResourceList{"cpu": resource.MustParse("100"), "nvidia.com/gpu": resource.MustParse("8")},
		Disruption:  cluster.Disruption{ConsolidationPolicy: "WhenEmpty", ConsolidateAfter: "5m", Budgets: []cluster.DisruptionBudget{{Nodes: "0", Reasons: []string{"Underutilized"}}}},
		ExpireAfter: "720h", TerminationGracePeriod: "1h",
		Ready: &cluster.Condition{Type: "Ready", Status: "False", Reason: "NodeClassNotReady", Message: "no subnet"},
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
		claim, err := cluster.NodeClaimFrom(content(t, text))
		require.NoError(t, err)
		assert.Equal(t, &cluster.NodeClaim{Labels: map[string]string{}}, claim)
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
spec:
  defaultImage: example.com/gpu:1
  allowedImages: [example.com/gpu:1, example.com/gpu:2]
  displayName: 7
  novelty: {}
  defaultResources: {requests: {cpu: 1, nvidia.com/gpu: "1"}, limits: {memory: 4Gi}, novelty: {}}
  resourceBounds:
    novelty: 1
    resources:
      cpu: {min: 100m, max: 2, novelty: 1}
      memory: {max: 8Gi}
      nvidia.com/gpu: {}
`))
	require.NoError(t, err)
	assert.Equal(t, &cluster.WorkspaceTemplate{
		Namespace: "shared", Name: "gpu", DefaultImage: "example.com/gpu:1",
		AllowedImages: []string{"example.com/gpu:1", "example.com/gpu:2"},
		DefaultResources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("4Gi")},
		},
		Bounds: map[corev1.ResourceName]cluster.Bounds{
			"cpu":            {Min: new(resource.MustParse("100m")), Max: new(resource.MustParse("2"))},
			"memory":         {Max: new(resource.MustParse("8Gi"))},
			"nvidia.com/gpu": {},
		},
	}, template)

}

// A template is read as a whole or not at all: with half its numbers no one could tell what its Workspaces request.
func TestWorkspaceTemplateFromNamesTheField(t *testing.T) {
	tests := map[string]string{
		`spec: {defaultImage: [a]}`:                                     "spec.defaultImage: got a value of type array, want a string (put the value in quotes)",
		`spec: {defaultResources: {requests: {cpu: 1, memory: lots}}}`:  "spec.defaultResources.requests.memory: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		`spec: {defaultResources: {limits: [4]}}`:                       "spec.defaultResources.limits: got a value of type array, want an object (key: value)",
		`spec: {resourceBounds: {resources: {cpu: {min: 1, max: {}}}}}`: "spec.resourceBounds.resources.cpu.max: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		`spec: {resourceBounds: {resources: {cpu: 4}}}`:                 "spec.resourceBounds.resources.cpu: got a value of type number, want an object (key: value)",
	}
	for text, want := range tests {
		_, err := cluster.WorkspaceTemplateFrom(content(t, text))
		assert.EqualError(t, err, "read WorkspaceTemplate: "+want)
	}
}

func TestNodeClaimFrom(t *testing.T) {
	claim, err := cluster.NodeClaimFrom(content(t, `
apiVersion: karpenter.sh/v9
kind: NodeClaim
metadata:
  name: gpu-a-x7k2p
  labels: {karpenter.sh/nodepool: gpu-a, topology.kubernetes.io/zone: us-west-2b}
  annotations: {a: 1}
  ownerReferences: 5
spec:
  expireAfter: 720h
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: x}
  resources: {requests: {cpu: lots}}
  taints:
  - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
  startupTaints:
  - {key: example.com/starting, effect: NoExecute}
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a]}
  - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}
  - {key: team, operator: NotIn, values: [a]}
  - {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["3"]}
  - {key: rack, operator: Exists}
status:
  providerID: aws:///x
  capacity: {cpu: lots}
  allocatable: {cpu: 3920m, nvidia.com/gpu: 1, memory: "14Gi"}
`))
	require.NoError(t, err, "what warmpool does not read must not matter")
	assert.Equal(t, &cluster.NodeClaim{
		Name: "gpu-a-x7k2p",
		Labels: map[string]string{
			"karpenter.sh/nodepool": "gpu-a", "node.kubernetes.io/instance-type": "g5.xlarge",
			"topology.kubernetes.io/zone": "us-west-2b", // what is settled wins over what was asked for
		},
		Taints:      []corev1.Taint{{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3920m"), "nvidia.com/gpu": resource.MustParse("1"), "memory": resource.MustParse("14Gi")},
	}, claim)

	claim, err = cluster.NodeClaimFrom(content(t, `metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}`))
	require.NoError(t, err)
	assert.True(t, claim.Deleting)
	assert.Empty(t, claim.Allocatable)
}

func TestWorkspaceTemplateFromRefusesQuantitiesThatTakeLong(t *testing.T) {
	for text, want := range map[string]string{
		`spec: {resourceBounds: {resources: {cpu: {min: "1", max: "1e-999999999"}}}}`:        "spec.resourceBounds.resources.cpu.max: a quantity's exponent must have at most two digits",
		`spec: {defaultResources: {requests: {memory: "1e999999999"}}, resourceBounds: 5}`:   "spec.defaultResources.requests.memory: a quantity's exponent must have at most two digits",
		`spec: {defaultResources: {limits: {memory: "` + strings.Repeat("1", 1<<20) + `"}}}`: "spec.defaultResources.limits.memory: a quantity must have at most 40 characters, not 1048576",
	} {
		_, err := cluster.WorkspaceTemplateFrom(content(t, text))
		assert.ErrorContains(t, err, "read WorkspaceTemplate: "+want)
	}
	template, err := cluster.WorkspaceTemplateFrom(content(t, `{metadata: {name: a, labels: {commit: "1e2345678"}}, spec: {defaultImage: "`+strings.Repeat("1", 99)+`"}}`))
	require.NoError(t, err, "what is no quantity may look so")
	assert.Len(t, template.DefaultImage, 99)
}

func TestNodeClaimFromNamesTheField(t *testing.T) {
	tests := map[string]string{
		`status: {allocatable: {cpu: 4, memory: ""}}`:           "status.allocatable.memory: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		`status: {allocatable: [4]}`:                            "status.allocatable: got a value of type array, want an object (key: value)",
		`metadata: {labels: {a: 1}}`:                            "metadata.labels.a: got a value of type number, want a string (put the value in quotes)",
		`spec: {requirements: [{key: a}, {key: b, values: a}]}`: "spec.requirements[1].values: got a value of type string, want a list (- value)",
	}
	for text, want := range tests {
		_, err := cluster.NodeClaimFrom(content(t, text))
		assert.EqualError(t, err, "read NodeClaim: "+want)
	}
}
