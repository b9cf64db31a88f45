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

// A running warmpool may read the quotas of one namespace: it says so of placeholders elsewhere.
func TestQuotasOfOtherNamespacesAreNotVerified(t *testing.T) {
	cfg, err := config.Load([]byte(unreadPools), policy.IDs())
	require.NoError(t, err)
	for namespace, want := range map[string]bool{"warm": false, "": false, "overprovisioning": true} {
		facts, _, err := manifest.Read([]string{"-"}, strings.NewReader(unreadCluster))
		require.NoError(t, err)
		facts.QuotaNamespace = namespace
		e := evaluatorOf(t, cfg, facts)
		d := facts.Deployments.Get("warm/ph")
		said := false
		for _, f := range e.Check(e.Placeholder(d, d.Namespace)) {
			if f.Rule.ID == "placeholder-pods" {
				said = true
				assert.Equal(t, config.Audit, f.Action)
				assert.Equal(t, "not verified: ResourceQuotas are read in namespace overprovisioning alone", f.Error.Detail)
			}
		}
		assert.Equal(t, want, said, namespace)
	}
}

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
		"PodTemplates":   {func(s *cluster.Snapshot) { s.PodTemplates = cluster.Unknown[corev1.PodTemplate]("forbidden") }, []string{"nodepool-double-buffer"}},
		"Pods":           {func(s *cluster.Snapshot) { s.Pods = cluster.Unknown[corev1.Pod]("forbidden") }, []string{"warm-count", "placeholder-stuck"}},
		"LimitRanges":    {func(s *cluster.Snapshot) { s.LimitRanges = cluster.Unknown[corev1.LimitRange]("forbidden") }, []string{"placeholder-pods"}},
		"ResourceQuotas": {func(s *cluster.Snapshot) { s.ResourceQuotas = cluster.Unknown[corev1.ResourceQuota]("forbidden") }, []string{"placeholder-pods"}},
		"nodes":          {func(s *cluster.Snapshot) { s.Nodes = cluster.Unknown[corev1.Node]("forbidden") }, []string{"node-taints", "node-disk-pressure"}},
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
