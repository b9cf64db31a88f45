package rbac_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
)

// Kinds that audits look at or write, beside those of install.CRDs.
var (
	audited = []kind{
		{"autoscaling.x-k8s.io", "v1alpha1", "CapacityBuffer", "capacitybuffers", true},
		{"kueue.x-k8s.io", "v1beta1", "WorkloadPriorityClass", "workloadpriorityclasses", false},
		{"karpenter.sagemaker.amazonaws.com", "v1", "HyperpodNodeClass", "hyperpodnodeclasses", false},
		{"karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses", false},
		{"eks.amazonaws.com", "v1", "NodeClass", "nodeclasses", false},
		{"cert-manager.io", "v1", "Certificate", "certificates", true},
		{"wgpolicyk8s.io", "v1alpha2", "PolicyReport", "policyreports", true},
		{"wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport", "clusterpolicyreports", false},
	}
	better = []kind{ // than the last two
		{"openreports.io", "v1alpha1", "Report", "reports", true},
		{"openreports.io", "v1alpha1", "ClusterReport", "clusterreports", false},
	}
)

type kind struct {
	group, version, kind, plural string
	namespaced                   bool
}

// crds define kinds whose objects may have any fields.
func crds(t *testing.T, kinds []kind) []*unstructured.Unstructured {
	t.Helper()
	var text strings.Builder
	for _, k := range kinds {
		scope := "Cluster"
		if k.namespaced {
			scope = "Namespaced"
		}
		fmt.Fprintf(&text, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[4]s.%[1]s}
spec:
  group: %[1]s
  scope: %[5]s
  names: {kind: %[3]s, plural: %[4]s}
  versions: [{name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
`, k.group, k.version, k.kind, k.plural, scope)
	}
	return decode(t, text.String())
}

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := controlplane.Decode(strings.NewReader(text))
	require.NoError(t, err)
	return objects
}

// others are NodePools with the node classes of other providers; they are of no pool.
const others = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: eks}
spec: {template: {spec: {nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: a}, requirements: [], expireAfter: Never}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: ec2}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}, requirements: [], expireAfter: Never}}}
`

// team is a namespace with a buffer, and with a Workspace that has a volume and stays out of its pool.
const team = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: CapacityBuffer
metadata: {name: web, namespace: %[1]s}
spec: {podTemplateRef: {name: web}}
---
apiVersion: v1
kind: Pod
metadata: {name: workspace, namespace: %[1]s, labels: {workspace.jupyter.org/workspace-name: w}}
spec:
  automountServiceAccountToken: false
  nodeSelector: {karpenter.sh/nodepool: another}
  containers: [{name: workspace, image: "registry.example/notebook:1"}]
  volumes: [{name: home, persistentVolumeClaim: {claimName: home}}]
`

var teams = []string{"team-a", "team-b"}

// toAudit is there before warmpool is; the Workspaces come when it is, because its webhooks are asked about them.
func toAudit(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return slices.Concat(crds(t, audited), decode(t, others))
}

// hurry has audits run as often as the configuration may ask for.
func (c *cluster) hurry(t *testing.T) {
	t.Helper()
	for _, w := range c.replicas {
		configuration, err := os.ReadFile(w.ConfigFile)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(w.ConfigFile, append([]byte("auditInterval: 10s\n"), configuration...), 0o600))
	}
}

// audits find something, tell it by one API, then by the better one, and take it back when it is fixed.
func (c *cluster) audits(t *testing.T) {
	c.hurry(t)
	for _, name := range teams {
		require.NoError(t, c.Apply(t.Context(), decode(t, fmt.Sprintf(team, name))...))
	}
	c.reports(t, "create", "policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io")
	require.NoError(t, c.Apply(t.Context(), crds(t, better)...))
	c.reports(t, "create", "reports.openreports.io", "clusterreports.openreports.io")
	for _, name := range teams {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "workspace"}}
		require.NoError(t, c.admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	}
	// Before, the limits could not be verified: no node has been seen.
	_, _, err := c.Kubectl(t.Context(), "", "patch", "nodepools", "spaces-cpu", "spaces-gpu", "--type=json",
		`--patch=[{"op": "replace", "path": "/spec/limits", "value": {"nodes": "100"}}]`)
	require.NoError(t, err)
	c.reports(t, "delete", "reports.openreports.io", "clusterreports.openreports.io")
}

// reports waits until those of both teams and of the cluster are written, or deleted.
func (c *cluster) reports(t *testing.T, verb, namespaced, ofCluster string) {
	t.Helper()
	for _, name := range teams {
		c.askedFor(t, verb+" of "+namespaced+" warmpool in namespace "+name)
	}
	c.askedFor(t, verb+" of "+ofCluster+" warmpool")
}
