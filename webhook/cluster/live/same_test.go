package live

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/manifest"
)

const sameCluster = nodePoolManifest + `
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: gpu-a-x7k2p, labels: {karpenter.sh/nodepool: gpu-a}}
spec:
  nodeClassRef: {group: karpenter.sagemaker.amazonaws.com, kind: HyperpodNodeClass, name: default}
  taints:
  - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [ml.p5.48xlarge]}
status: {allocatable: {cpu: 47810m, memory: 193044768Ki}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {karpenter.sh/nodepool: gpu-a}}
spec: {taints: [{key: nvidia.com/gpu, value: "true", effect: NoSchedule}]}
status: {capacity: {cpu: 8, nvidia.com/gpu: 1}}
---
apiVersion: v1
kind: Namespace
metadata: {name: overprovisioning, labels: {team: ml}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: overprovisioning}
spec:
  limits:
  - type: Container
    max: {cpu: 8, memory: 8Gi}
    min: {cpu: 100m, ephemeral-storage: 1Gi}
    default: {memory: 4Gi, ephemeral-storage: 2Gi}
    defaultRequest: {memory: 1Gi}
  - {type: Pod, max: {cpu: 16}}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {memory: 160Mi, cpu: 250m}}
scheduling: {nodeSelector: {kata: "true"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: overprovisioning-placeholder}
value: -1000
preemptionPolicy: Never
---
apiVersion: workspace.jupyter.org/v1alpha1
kind: WorkspaceTemplate
metadata: {name: gpu, namespace: default}
spec:
  defaultImage: a
  allowedImages: [a, b]
  defaultResources: {requests: {cpu: 2, memory: 4Gi}}
  resourceBounds: {resources: {cpu: {min: 100m, max: "4"}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: overprovisioning}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      runtimeClassName: kata
      nodeSelector: {kubernetes.io/os: linux}
      tolerations: [{operator: Exists}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: node.kubernetes.io/instance-type, operator: In, values: [ml.p5.48xlarge]}]
      initContainers:
      - {name: sidecar, image: i, restartPolicy: Always, resources: {requests: {cpu: "0.1"}}}
      containers:
      - {name: agent, image: i, env: [{name: A, value: b}], resources: {limits: {cpu: 250m, memory: 128Mi}}}
      - {name: other, image: i}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: spaces-placeholder-gpu, namespace: overprovisioning, labels: {warmpool.sh/pool: gpu}}
spec:
  selector: {matchLabels: {app: spaces-placeholder}}
  template:
    metadata: {labels: {app: spaces-placeholder}}
    spec:
      priorityClassName: overprovisioning-placeholder
      containers: [{name: pause, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: "2"}}}]
`

// testSame compares what rules read of a cluster with what they read of the manifests that made it; the rest is the API
// server's defaults.
func testSame(t *testing.T, plane *controlplane.ControlPlane, reader *Reader) {
	want, _, err := manifest.Read([]string{"-"}, strings.NewReader(sameCluster))
	require.NoError(t, err)
	furnish(t, plane)
	eventually(t, "all is read", func() bool {
		s := reader.Snapshot()
		template := s.Templates.Get("default/gpu")
		claim := s.NodeClaims.Get("gpu-a-x7k2p")
		return s.Deployments.Len() > 0 && s.NodePools.Len() > 0 && s.DaemonSets.Len() > 0 && s.LimitRanges.Len() > 0 && s.RuntimeClasses.Len() > 0 &&
			s.Nodes.Get("n2") != nil && s.Namespaces.Get("overprovisioning") != nil && s.PriorityClasses.Get("overprovisioning-placeholder") != nil &&
			template != nil && len(template.AllowedImages) == 2 && claim != nil && len(claim.Allocatable) > 0
	})
	got := reader.Snapshot()
	same(t, want.NodePools, got.NodePools, func(p *cluster.NodePool) any {
		content := *p
		content.Disruption, content.ExpireAfter = cluster.Disruption{}, "" // the CRD's defaults
		content.UID, content.APIVersion = "", ""                           // of the object, and of the version that is served
		return content
	})
	same(t, want.NodeClaims, got.NodeClaims, func(c *cluster.NodeClaim) any { return c })
	same(t, want.Templates, got.Templates, func(t *cluster.WorkspaceTemplate) any {
		content := *t
		content.UID, content.APIVersion = "", "" // of the object, and of the version that is served
		return content
	})
	same(t, want.PriorityClasses, got.PriorityClasses, func(c *schedulingv1.PriorityClass) any { return c.Value })
	same(t, want.LimitRanges, got.LimitRanges, func(r *corev1.LimitRange) any { return r.Spec })
	same(t, want.RuntimeClasses, got.RuntimeClasses, func(c *nodev1.RuntimeClass) any { return []any{c.Handler, c.Overhead, c.Scheduling} })
	same(t, want.DaemonSets, got.DaemonSets, func(d *appsv1.DaemonSet) any {
		return transformed(t, keep(cluster.DaemonSets, nil), d.DeepCopy()).Spec
	})
	same(t, want.Deployments, got.Deployments, func(d *appsv1.Deployment) any {
		pod := d.Spec.Template.Spec
		return []any{d.Labels, d.Spec.Selector, d.Spec.Template.Labels, pod.PriorityClassName, pod.Containers[0].Name, pod.Containers[0].Image, pod.Containers[0].Resources}
	})
	same(t, want.Nodes, got.Nodes, func(n *corev1.Node) any { return []any{n.Labels, n.Status.Allocatable} })
	assert.Subset(t, got.Nodes.Get("n2").Spec.Taints, want.Nodes.Get("n2").Spec.Taints, "and one that tells that it is not ready")
	assert.Equal(t, want.Namespaces.Get("overprovisioning").Labels, got.Namespaces.Get("overprovisioning").Labels)
}

// furnish applies the objects; the API server takes no NodeClaim's status with the rest, and a node's when it is new only.
func furnish(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	require.NoError(t, plane.Apply(t.Context(), decode(t, string(apis.NodePoolCRD)+"\n---\n"+string(apis.NodeClaimCRD))...))
	require.NoError(t, plane.Apply(t.Context(), decode(t, sameCluster)...))
	direct, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	for _, object := range decode(t, sameCluster) {
		if object.GetKind() != cluster.NodeClaimGroupKind.Kind {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		require.NoError(t, direct.Get(t.Context(), client.ObjectKeyFromObject(object), live))
		live.Object["status"] = object.Object["status"]
		require.NoError(t, direct.Status().Update(t.Context(), live))
	}
}

// same compares in YAML, where equal quantities look the same.
func same[T any](t *testing.T, want, got cluster.Facts[T], part func(*T) any) {
	t.Helper()
	text := func(facts cluster.Facts[T]) string {
		all := map[string]any{}
		for key, object := range facts.All() {
			all[key] = part(object)
		}
		data, err := yaml.Marshal(all)
		require.NoError(t, err)
		return string(data)
	}
	require.NotZero(t, want.Len())
	assert.Equal(t, text(want), text(got))
}
