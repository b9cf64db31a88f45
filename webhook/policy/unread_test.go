package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

const unreadPools = `
apiVersion: config.warmpool.sh/v1alpha1
kind: WarmPoolConfiguration
pools:
- name: cpu
  nodePools: [cpu-a]
- name: labelled
  nodeLabel: {key: team/pool, values: [notebooks]}
- name: gpu
  nodePools: [gpu-a]
  accelerators: ["nvidia.com/*"]
`

const unreadCluster = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: cpu-a}
spec: {limits: {cpu: 64}, template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ph, namespace: warm, uid: u, labels: {warmpool.sh/pool: cpu}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ph}}
  template:
    metadata: {labels: {app: ph}, annotations: {karpenter.sh/do-not-disrupt: "true"}}
    spec: {containers: [{name: pause, image: pause:1}]}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: room, namespace: warm}
spec: {podTemplateRef: {name: web}, replicas: 3}
`

// A kind that this user may not read makes no rule silent, and none complain of more than that.
func TestUnreadKindsAreNotVerified(t *testing.T) {
	cfg, err := config.Load([]byte(unreadPools), policy.IDs())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		forget func(*cluster.Snapshot)
		rules  []string
	}{
		"NodePools": {
			func(s *cluster.Snapshot) { s.NodePools = cluster.Unknown[cluster.NodePool]("forbidden") },
			[]string{"nodepool-ready", "nodepool-label", "nodepool-consolidation", "nodepool-limits", "nodepool-taints", "nodepool-expiry", "nodepool-capacity-type"},
		},
		"Deployments": {func(s *cluster.Snapshot) { s.Deployments = cluster.Unknown[appsv1.Deployment]("forbidden") }, []string{"nodepool-expiry"}},
		"EC2NodeClass default": {
			func(s *cluster.Snapshot) { s.NodeClasses = cluster.Unknown[cluster.NodeClass]("forbidden") }, []string{"nodepool-ready"},
		},
		"CapacityBuffers": {
			func(s *cluster.Snapshot) { s.CapacityBuffers = cluster.Unknown[cluster.CapacityBuffer]("forbidden") }, []string{"nodepool-double-buffer"},
		},
		"PodTemplates": {func(s *cluster.Snapshot) { s.PodTemplates = cluster.Unknown[corev1.PodTemplate]("forbidden") }, []string{"nodepool-double-buffer"}},
		"Pods":         {func(s *cluster.Snapshot) { s.Pods = cluster.Unknown[corev1.Pod]("forbidden") }, []string{"warm-count", "placeholder-stuck"}},
		"nodes":        {func(s *cluster.Snapshot) { s.Nodes = cluster.Unknown[corev1.Node]("forbidden") }, []string{"node-taints", "node-disk-pressure"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts, _, err := manifest.Read([]string{"-"}, strings.NewReader(unreadCluster))
			require.NoError(t, err)
			c.forget(facts)
			findings, _ := evaluatorOf(t, cfg, facts).Audit()
			said := map[string]bool{}
			for _, f := range findings {
				if strings.HasPrefix(f.Error.Detail, "not verified: "+name+": forbidden") {
					said[f.Rule.ID] = true
					assert.Equal(t, policy.SeverityInfo, f.Severity, f.Rule.ID)
				}
			}
			for _, rule := range c.rules {
				assert.True(t, said[rule], "%s is silent", rule)
			}
		})
	}
}
