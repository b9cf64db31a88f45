// Package chart_test holds the Helm chart to the kustomizations, and installs it on a real API server.
package chart_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/test/harness/chart"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// helms builds both versions of Helm.
func helms(t *testing.T) map[string]string {
	t.Helper()
	built := map[string]string{}
	for _, version := range chart.Helms {
		path, err := chart.Helm(t.Context(), repository(t), version)
		require.NoError(t, err)
		built[version] = path
	}
	return built
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	return root
}

func chartDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(repository(t), "manifests", "chart")
}

// template renders the chart with values as a file has them; the error is what Helm says.
func template(t *testing.T, helm, values string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	cmd := exec.CommandContext(t.Context(), helm, "template", "warmpool", chartDir(t), "--skip-tests", "--kube-version", "1.37.0", "-f", file)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, &complaints)
	}
	assert.Empty(t, complaints.String())
	return controlplane.Decode(bytes.NewReader(out))
}

// byName has the objects by what they are called. Documents within objects are read, so that how they are written does not
// count: the configuration with its defaults, and CPA's parameters.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, o := range objects {
		name := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		require.NotContains(t, found, name)
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		content := o.DeepCopy().Object
		for key, text := range data {
			var read any
			switch key {
			case "warmpool.yaml":
				cfg, err := config.Load([]byte(text), policy.IDs())
				require.NoError(t, err, name)
				read = cfg
			case "linear":
				require.NoError(t, json.Unmarshal([]byte(text), &read), name)
			default:
				continue
			}
			content["data"] = map[string]any{key: read}
		}
		found[name] = content
	}
	return found
}

// kustomized are the objects of a kustomization that is written as a user would, in a copy of the manifests.
func kustomized(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(filepath.Join(repository(t), "manifests"))))
	own := filepath.Join(dir, "manifests", "own")
	require.NoError(t, os.MkdirAll(own, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o600))
	objects, err := install.Render(own)
	require.NoError(t, err)
	return objects
}

const fixed = `
pools:
- name: cpu
  nodePools: [spaces-cpu]
  templates: [{namespace: jupyter-k8s-shared, name: cpu}]
  sizing: {mode: Coexist}
  placeholders:
  - images: ["public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu"]
    requests: {cpu: "2", memory: 8Gi}
    replicas: 2
- name: gpu
  nodePools: [spaces-gpu]
  accelerators: ["nvidia.com/*"]
  taints: ["nvidia.com/gpu:NoSchedule"]
  templates: [{namespace: jupyter-k8s-shared, name: gpu}]
  sizing: {mode: Exclusive}
  placeholders:
  - images: ["public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu"]
    requests: {cpu: "2", memory: 8Gi, nvidia.com/gpu: "1"}
    replicas: 2
`

const labelled = `
pools:
- name: cpu
  nodeLabel: {key: example.com/pool, values: [spaces-cpu]}
  autoscaler: None
  templates: [{namespace: jupyter-k8s-shared, name: cpu}]
  sizing: {mode: Coexist, allocatable: {cpu: 47810m, memory: 193044768Ki}}
  placeholders:
  - images: ["public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu"]
    requests: {cpu: 2, memory: 8Gi}
    scaling: {nodesPerReplica: 4, min: 2, max: 5}
- name: gpu
  nodeLabel: {key: example.com/pool, values: [spaces-gpu]}
  autoscaler: None
  accelerators: ["nvidia.com/*"]
  taints: ["nvidia.com/gpu:NoSchedule"]
  templates: [{namespace: jupyter-k8s-shared, name: gpu}]
  sizing: {mode: Exclusive, allocatable: {cpu: 47450m, memory: 186Gi, nvidia.com/gpu: "4"}}
  placeholders:
  - images: ["public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu"]
    requests: {cpu: 2, memory: 8Gi, nvidia.com/gpu: 1}
    scaling: {nodesPerReplica: 4, min: 2, max: 5}
`

// TestEqualsKustomize: the chart gives the objects of each overlay, variant and component.
func TestEqualsKustomize(t *testing.T) {
	cases := map[string]struct{ values, kustomization string }{
		"embedded":     {"", "resources: [../overlays/embedded]"},
		"cert-manager": {"certs: cert-manager", "resources: [../overlays/cert-manager]"},
		"cel":          {"placement: cel", "resources: [../overlays/cel]"},
		"static":       {"placement: static", "resources: [../variants/static-policy]"},
		"namespaces": {"namespace: platform-warmpool\nplaceholders: {namespace: platform-placeholders}",
			"resources: [../variants/namespaces]"},
		"node label":  {labelled, "resources: [../variants/node-label]"},
		"without CPA": {fixed, "resources: [../variants/without-cpa]"},
		"demand": {strings.ReplaceAll(strings.ReplaceAll(fixed, "    replicas: 2\n", ""), "  placeholders:\n", "  size: {mode: Apply, objective: 0.95, min: 1, max: 5}\n  placeholders:\n"),
			"resources: [../variants/demand]"},
		"monitoring":     {"monitoring: true", "resources: [../overlays/embedded]\ncomponents: [../components/monitoring]"},
		"network policy": {"networkPolicy: true", "resources: [../overlays/embedded]\ncomponents: [../components/networkpolicy]"},
		"all at once": {"certs: cert-manager\nmonitoring: true\nnetworkPolicy: true\n" + fixed,
			"resources: [../overlays/cert-manager]\ncomponents: [../components/monitoring, ../components/networkpolicy, ../components/without-cpa]"},
	}
	for version, helm := range helms(t) {
		for name, c := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				objects, err := template(t, helm, c.values)
				require.NoError(t, err)
				want, got := byName(t, kustomized(t, c.kustomization)), byName(t, objects)
				require.NotEmpty(t, want)
				assert.Equal(t, keys(want), keys(got))
				for name := range want {
					assert.Equal(t, want[name], got[name], name)
				}
			})
		}
	}
}

func keys(objects map[string]any) string {
	return strings.Join(slices.Sorted(maps.Keys(objects)), "\n")
}
