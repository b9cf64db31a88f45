package live

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/karpenter/pkg/apis"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
)

const (
	startLimit = 5 * time.Minute // programs may have to be built first
	limit      = 60 * time.Second
	step       = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime prints a stack trace after 30 s
	os.Exit(m.Run())
}

// rights are those of the package comment.
const rights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [nodes, namespaces, limitranges, pods, resourcequotas], verbs: [list, watch]}
- {apiGroups: [apps], resources: [deployments, daemonsets], verbs: [list, watch]}
- {apiGroups: [node.k8s.io], resources: [runtimeclasses], verbs: [list, watch]}
- {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [list, watch]}
- {apiGroups: [karpenter.sh], resources: [nodepools, nodeclaims], verbs: [list, watch]}
- {apiGroups: [workspace.jupyter.org], resources: [workspacetemplates], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [warmpool-last-seen], verbs: [list, watch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
`

// startReader runs a Reader with these rights over a new API server until the test ends.
func startReader(t *testing.T) (*controlplane.ControlPlane, *Reader, *journal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{}))
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })

	require.NoError(t, plane.Apply(ctx, decode(t, rights)...))
	kubeconfig, err := plane.ServiceAccountKubeconfig(ctx, "default", "reader")
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	told := &journal{}
	mgr, err := manager.New(config, manager.Options{
		Logger: told.logger(), Cache: CacheOptions("default", "default", candidate), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	require.NoError(t, err)
	reader, err := New(mgr, "default")
	require.NoError(t, err)
	reader.discoverInterval = step
	require.NoError(t, mgr.Add(reader))
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	eventually(t, "the reader is synced", reader.Synced)
	return plane, reader, told
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, limit, step, what)
}

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := controlplane.Decode(strings.NewReader(text))
	require.NoError(t, err)
	return objects
}

// One API server serves all of this: the CRDs come and go in the order of the steps.
func TestReaderFollowsACluster(t *testing.T) {
	plane, reader, told := startReader(t)
	ctx := t.Context()
	direct, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	apply := func(t *testing.T, text string) {
		t.Helper()
		require.NoError(t, plane.Apply(ctx, decode(t, text)...))
	}
	remove := func(t *testing.T, text string) {
		t.Helper()
		for _, object := range decode(t, text) {
			require.NoError(t, direct.Delete(ctx, object))
		}
	}

	t.Run("no CRDs", func(t *testing.T) {
		snapshot := reader.Snapshot()
		assert.Equal(t, "no NodePool CRD (karpenter.sh) in the cluster", snapshot.NodePools.Reason())
		assert.Equal(t, "no WorkspaceTemplate CRD (workspace.jupyter.org) in the cluster", snapshot.Templates.Reason())
		assert.NotNil(t, snapshot.PriorityClasses.Get("system-node-critical"))
		assert.NotNil(t, snapshot.Namespaces.Get("kube-system"))
		assert.True(t, snapshot.Nodes.Known())
	})
	t.Run("nodes", func(t *testing.T) {
		apply(t, `{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {karpenter.sh/nodepool: gpu-a}}}`)
		eventually(t, "the node is seen", func() bool { return reader.Snapshot().Nodes.Get("n1") != nil })
		assert.Equal(t, "gpu-a", reader.Snapshot().Nodes.Get("n1").Labels["karpenter.sh/nodepool"])
		apply(t, `{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {unschedulable: true}}`)
		eventually(t, "the node is cordoned", func() bool { return reader.Snapshot().Nodes.Get("n1").Spec.Unschedulable })
		remove(t, `{apiVersion: v1, kind: Node, metadata: {name: n1}}`)
		eventually(t, "the node is gone", func() bool { return reader.Snapshot().Nodes.Get("n1") == nil })
	})
	t.Run("NodePool CRD comes, goes and comes", func(t *testing.T) {
		crd := string(apis.NodePoolCRD)
		for range 2 {
			apply(t, crd)
			apply(t, nodePoolManifest)
			eventually(t, "the NodePool is read", func() bool { return reader.Snapshot().NodePools.Get("gpu-a") != nil })
			remove(t, crd)
			eventually(t, "NodePools are unknown again", func() bool {
				return reader.Snapshot().NodePools.Reason() == "no NodePool CRD (karpenter.sh) in the cluster"
			})
			assert.True(t, reader.Synced())
		}
		assert.Equal(t, 3, told.count("no NodePool CRD"), "one line per change: %v", told.lines)
		assert.Equal(t, 2, told.count(`"kind"="NodePool"`), "one line per change: %v", told.lines)
	})
	t.Run("preferred version changes", func(t *testing.T) { testVersions(t, reader, told, apply) })
	t.Run("as manifests say", func(t *testing.T) { testSame(t, plane, reader) })
}

const nodePoolManifest = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu-a}
spec:
  template:
    metadata: {labels: {team: ml}}
    spec:
      nodeClassRef: {group: karpenter.sagemaker.amazonaws.com, kind: HyperpodNodeClass, name: default}
      taints:
      - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
      startupTaints:
      - {key: example.com/starting, effect: NoExecute}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [ml.p5.48xlarge], minValues: 1}
`

// templateCRD serves WorkspaceTemplates in the versions; what they hold is free.
func templateCRD(versions ...string) string {
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workspacetemplates.workspace.jupyter.org}
spec:
  group: workspace.jupyter.org
  scope: Namespaced
  names: {kind: WorkspaceTemplate, plural: workspacetemplates, singular: workspacetemplate, listKind: WorkspaceTemplateList}
  versions:
`
	for _, version := range versions {
		stored := "false"
		if version == "v1alpha1" {
			stored = "true"
		}
		text += "  - {name: " + version + ", served: true, storage: " + stored +
			", schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	}
	return text
}

func testVersions(t *testing.T, reader *Reader, told *journal, apply func(*testing.T, string)) {
	template := `{apiVersion: workspace.jupyter.org/v1alpha1, kind: WorkspaceTemplate, metadata: {name: gpu, namespace: default}, spec: {defaultImage: "%s"}}`
	image := func(want string) func() bool {
		return func() bool {
			got := reader.Snapshot().Templates.Get("default/gpu")
			return got != nil && got.DefaultImage == want
		}
	}
	apply(t, templateCRD("v1alpha1"))
	apply(t, strings.Replace(template, "%s", "one", 1))
	eventually(t, "the template is read", image("one"))

	apply(t, templateCRD("v1", "v1alpha1"))
	eventually(t, "the preferred version is watched", func() bool {
		return told.count(`"group"="workspace.jupyter.org" "version"="v1"`) > 0 && reader.Snapshot().Templates.Known()
	})
	assert.True(t, image("one")())
	apply(t, strings.Replace(template, "%s", "two", 1))
	eventually(t, "the change is seen", image("two"))

	apply(t, strings.Replace(template, `"%s"`, "[three]", 1))
	eventually(t, "a malformed template is told", func() bool { return reader.Snapshot().Templates.Malformed("default/gpu") != "" })
	assert.True(t, reader.Snapshot().Templates.Known())
	apply(t, strings.Replace(template, "%s", "four", 1))
	eventually(t, "the corrected one is read", image("four"))
}
