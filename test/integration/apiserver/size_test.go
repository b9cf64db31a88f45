package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/install"
)

// Beside the example cluster: a second type in the pool cpu, and DaemonSets whose requests come from elsewhere.
const sizedObjects = `
apiVersion: v1
kind: Node
metadata:
  name: size-larger
  labels: {karpenter.sh/nodepool: spaces-cpu, node.kubernetes.io/instance-type: ml.m5.24xlarge, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
status:
  allocatable: {cpu: 95690m, memory: "389000000001", ephemeral-storage: 1Ti, pods: "737"}
  capacity: {cpu: "96", memory: 384Gi, ephemeral-storage: 1Ti, pods: "737"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: LimitRange
metadata: {name: size-defaults, namespace: aws-hyperpod}
spec: {limits: [{type: Container, defaultRequest: {cpu: 123m}, default: {memory: 77Mi}}]}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: size-sandboxed}
handler: sandboxed
overhead: {podFixed: {cpu: 70m, memory: 33Mi}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: size-by-default, namespace: aws-hyperpod}
spec:
  selector: {matchLabels: {app: size-by-default}}
  template:
    metadata: {labels: {app: size-by-default}}
    spec:
      runtimeClassName: size-sandboxed
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: "agent:1"}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: size-by-limit, namespace: kube-system}
spec:
  selector: {matchLabels: {app: size-by-limit}}
  template:
    metadata: {labels: {app: size-by-limit}}
    spec:
      nodeSelector: {node.kubernetes.io/instance-type: ml.m5.24xlarge}
      containers: [{name: agent, image: "agent:1", resources: {limits: {cpu: 0.5, memory: 1024Mi}}}]
`

// The same objects in a folder and in a live server give the same numbers and the same verdicts.
func TestSizeFromFolderAndLive(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	binary, err := install.Build(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	addSized(t, root)
	folder := dump(t)
	objects := placeholdersOfSizes(t, root)
	try := func(name string) string { return filepath.Join(root, "manifests", "try", name) }

	for _, args := range [][]string{
		{"size", "-o", "json"},
		{"admit", "-o", "json", "-f", objects, "-f", try("workspace-cpu.yaml"), "-f", try("workspace-gpu.yaml"), "-f", try("placeholder-broken.yaml")},
	} {
		t.Run(args[0], func(t *testing.T) {
			args = append(args, "--config", warmpool.ConfigFile)
			fromFolder := runWarmpool(t, binary, append(args, "--cluster", folder)...)
			live := runWarmpool(t, binary, append(args, "--kubeconfig", cp.Kubeconfig)...)
			assert.Equal(t, fromFolder, live)
			assert.True(t, json.Valid([]byte(live.out)), live.errOut)
			for _, says := range map[string][]string{
				"size": {
					`"daemonSets": "873m"`,          // of ml.m5.12xlarge: 680m, and 123m by default with 70m overhead
					`"daemonSets": "1373m"`,         // of ml.m5.24xlarge
					`"otherNodes": 2`,               // three nodes of which one is held
					`"name": "ml.m5.24xlarge"`,      // with memory to the byte:
					`"allocatable": "389000000001"`, //
					`no node of pool idle has`,      // a pool without nodes
				},
				"admit": {
					"fits ml.m5.24xlarge but not ml.m5.12xlarge (cpu 46938m requested, 46937m available)",
					"cpu 94318m requested, 94317m available on ml.m5.24xlarge (1m short)",
				},
			}[args[0]] {
				assert.Contains(t, live.out, says)
			}
		})
	}
}

// addSized puts the objects into the server, and takes them out again after the test.
func addSized(t *testing.T, root string) {
	t.Helper()
	objects, err := decodeFile(filepath.Join(root, "manifests", "examples", "fine", "daemonsets.yaml"))
	require.NoError(t, err)
	more, err := decodeText(sizedObjects)
	require.NoError(t, err)
	afterwards := context.WithoutCancel(t.Context())
	for _, object := range append(objects, more...) {
		require.NoError(t, cp.Apply(t.Context(), object))
		t.Cleanup(func() { assert.NoError(t, admin.Delete(afterwards, object)) })
	}
	// What a controller would say: a placeholder runs on one of the nodes.
	placeholder := &appsv1.Deployment{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: "overprovisioning", Name: "spaces-placeholder-cpu"}, placeholder))
	setReady := func(ready int32) error {
		patch := fmt.Appendf(nil, `{"status":{"replicas":%[1]d,"readyReplicas":%[1]d}}`, ready)
		return admin.Status().Patch(afterwards, placeholder, client.RawPatch("application/merge-patch+json", patch))
	}
	require.NoError(t, setReady(1))
	t.Cleanup(func() { assert.NoError(t, setReady(0)) })
}

// dump writes what warmpool reads of the server into a folder, as kubectl get -o json does.
func dump(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "LimitRange"}, {Version: "v1", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, {Group: "node.k8s.io", Version: "v1", Kind: "RuntimeClass"},
		{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}, {Group: "workspace.jupyter.org", Version: "v1alpha1", Kind: "WorkspaceTemplate"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		require.NoError(t, admin.List(t.Context(), list))
		if len(list.Items) == 0 {
			continue
		}
		content, err := list.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, strings.ToLower(gvk.Kind)+".json"), content, 0o600))
	}
	return dir
}

// placeholdersOfSizes writes shipped placeholders of the pool cpu that are at and one millicore over what there is.
func placeholdersOfSizes(t *testing.T, root string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "manifests", "base", "placeholders", "cpu.yaml"))
	require.NoError(t, err)
	deployment, _, _ := strings.Cut(string(content), "\n---\n") // a budget follows
	require.Equal(t, 2, strings.Count(deployment, `cpu: "2"`))
	var all []string
	for _, cpu := range []string{"46937m", "46938m", "94317m", "94318m"} {
		one := strings.ReplaceAll(deployment, `cpu: "2"`, "cpu: "+cpu)
		all = append(all, strings.Replace(one, "name: spaces-placeholder-cpu", "name: of-"+cpu, 1))
	}
	path := filepath.Join(t.TempDir(), "placeholders.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(all, "\n---\n")), 0o600))
	return path
}

type result struct {
	out, errOut string
	code        int
}

func runWarmpool(t *testing.T, binary string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}
