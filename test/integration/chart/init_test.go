package chart_test

import (
	"bytes"
	"encoding/json"
	"errors"
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
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/chart"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

// rig has the programs, and a folder for the cluster's manifests.
type rig struct{ warmpool, helm, facts string }

func newRig(t *testing.T) *rig {
	t.Helper()
	binary, err := install.Build(t.Context(), repository(t), t.TempDir())
	require.NoError(t, err)
	helm, err := chart.Helm(t.Context(), repository(t), "v4")
	require.NoError(t, err)
	return &rig{warmpool: binary, helm: helm, facts: t.TempDir()}
}

// add puts manifests into the cluster, without what the chart makes itself.
func (r *rig) add(t *testing.T, name, manifests string) {
	t.Helper()
	objects, err := controlplane.Decode(strings.NewReader(manifests))
	require.NoError(t, err)
	var text strings.Builder
	for _, o := range objects {
		ours := o.GetName() == "overprovisioning" || o.GetName() == "warmpool-system" || o.GetName() == "overprovisioning-placeholder"
		if !ours {
			text.WriteString("---\n" + yamlOf(t, o))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(r.facts, name), []byte(text.String()), 0o600))
}

func yamlOf(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	require.NoError(t, err)
	return string(text)
}

func (r *rig) run(t *testing.T, args ...string) string {
	t.Helper()
	var complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), r.warmpool, args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", complaints.String(), out)
	assert.Empty(t, complaints.String())
	return string(out)
}

// sound holds what the chart makes of the values to the cluster's facts: it is admitted as it is, without a warning, and an
// audit finds nothing in it. What it finds elsewhere is returned.
func (r *rig) sound(t *testing.T, values string) []string {
	t.Helper()
	objects, err := template(t, r.helm, values)
	require.NoError(t, err)
	var text strings.Builder
	made := map[string]bool{}
	for _, o := range objects {
		text.WriteString("---\n" + yamlOf(t, o))
		made[o.GetKind()+" "+o.GetName()] = true
	}
	release := filepath.Join(r.facts, "release.yaml")
	require.NoError(t, os.WriteFile(release, []byte(text.String()), 0o600))
	for line := range strings.Lines(r.run(t, "admit", "-f", release, "--cluster", r.facts, "-o", "patch")) {
		assert.Equal(t, "[]\n", line)
	}
	var report struct {
		Findings []struct{ Rule, Severity, Kind, Name, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.run(t, "audit", "-f", r.facts, "--fail-on", "none", "-o", "json")), &report))
	elsewhere := map[string]bool{}
	for _, f := range report.Findings {
		assert.False(t, made[f.Kind+" "+f.Name], "%+v", f)
		elsewhere[fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Kind)] = true
	}
	return slices.Sorted(maps.Keys(elsewhere))
}

// readFile is a file of the repository.
func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{repository(t)}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// The example cluster before warmpool.
func TestInitOnExamples(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "templates.yaml", "nodes.yaml", "daemonsets.yaml"} {
		r.add(t, name, readFile(t, "manifests", "examples", "fine", name))
	}
	values := r.run(t, "init", "-f", r.facts, "--image", "registry.example/warmpool:v1")
	assert.NotContains(t, values, "decide:")
	assert.Empty(t, r.sound(t, values))
}

// Placeholders by hand, as the public guide has them, on a node of the guide's type. The moving tag is exempt; what is wrong
// with the NodePool is not the chart's to change.
func TestInitOnGuide(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(os.Getenv("WARMPOOL_FIELD_DATA"), "guide-manifests.yaml"))
	if err != nil {
		err = errors.New("WARMPOOL_FIELD_DATA names no folder with guide-manifests.yaml, what who follows the public guide has in the cluster")
	}
	needs.Check(t, needs.FieldData, err)
	r := newRig(t)
	const node = `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {karpenter.sh/nodepool: spaces-cpu, team: notebooks, kubernetes.io/os: linux, node.kubernetes.io/instance-type: ml.m5.12xlarge}}
status: {allocatable: {cpu: 47810m, memory: 193044768Ki, pods: "234"}}
`
	r.add(t, "guide.yaml", string(guide)+"---"+node)
	values := r.run(t, "init", "-f", r.facts, "--image", "registry.example/warmpool:v1")
	assert.Contains(t, values, "--take-ownership")
	assert.Contains(t, values, "kubectl -n overprovisioning delete deployment spaces-overprovisioning-cpa")
	// The chart's objects take the places of those by hand.
	objects, err := controlplane.Decode(bytes.NewReader(guide))
	require.NoError(t, err)
	kept := "---" + node
	for _, o := range objects {
		if o.GetKind() == "NodePool" {
			kept += "---\n" + yamlOf(t, o)
		}
	}
	r.add(t, "guide.yaml", kept)
	assert.Equal(t, []string{"info nodepool-ready NodePool", "warning nodepool-expiry NodePool"}, r.sound(t, values))
}

// Two GPU types, Neuron, CPU and a node label, by one values file of at most 40 lines.
func TestFivePools(t *testing.T) {
	values := readFile(t, "test", "integration", "chart", "testdata", "five-pools.yaml")
	assert.LessOrEqual(t, strings.Count(values, "\n"), 40)
	r := newRig(t)
	var text strings.Builder
	add := func(pool, label, instanceType, resources, taints, request string) {
		for i, zone := range []string{"us-west-2a", "us-west-2b", "us-west-2a"} {
			fmt.Fprintf(&text, `---
apiVersion: v1
kind: Node
metadata: {name: %[1]s-%[2]d, labels: {%[3]s, kubernetes.io/os: linux, kubernetes.io/arch: amd64, topology.kubernetes.io/zone: %[4]s, node.kubernetes.io/instance-type: %[5]s}}
spec: {taints: [%[7]s]}
status: {allocatable: {%[6]s, pods: "200"}, conditions: [{type: Ready, status: "True"}]}
`, pool, i, label, zone, instanceType, resources, taints)
		}
		image := map[string]string{"cpu": "cpu", "g5": "gpu", "a100": "gpu", "neuron": "neuron", "rack": "npu"}[pool]
		fmt.Fprintf(&text, `---
apiVersion: workspace.jupyter.org/v1alpha1
kind: WorkspaceTemplate
metadata: {name: %[1]s, namespace: shared}
spec:
  defaultImage: registry.example/notebook:1-%[2]s
  defaultResources: {requests: {%[3]s}, limits: {%[3]s}}
  resourceBounds: {resources: {cpu: {min: "4"}}}
  defaultIdleShutdown: {enabled: true, idleTimeoutInMinutes: 60, detection: {httpGet: {path: /api/idle, port: 8888}}}
`, pool, image, request)
		if pool == "rack" {
			return
		}
		fmt.Fprintf(&text, `---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: notebooks}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [%[2]s]}]
      taints: [%[3]s]
      expireAfter: Never
  limits: {cpu: 10k, memory: 10Ti, nvidia.com/gpu: 100, aws.amazon.com/neuron: 100}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5m}
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-11-02T08:00:00Z"}]}
`, pool, instanceType, taints)
	}
	const nvidia = `{key: nvidia.com/gpu, value: "true", effect: NoSchedule}`
	add("cpu", "karpenter.sh/nodepool: cpu", "m5.12xlarge", `cpu: "47", memory: 180Gi`, "", `cpu: "4", memory: 16Gi`)
	add("g5", "karpenter.sh/nodepool: g5", "g5.8xlarge", `cpu: "31", memory: 120Gi, nvidia.com/gpu: "1"`, nvidia, `cpu: "4", memory: 16Gi, nvidia.com/gpu: "1"`)
	add("a100", "karpenter.sh/nodepool: a100", "p4d.24xlarge", `cpu: "95", memory: 1100Gi, nvidia.com/gpu: "8"`,
		nvidia+", {key: team, value: research, effect: NoSchedule}", `cpu: "4", memory: 16Gi, nvidia.com/gpu: "1"`)
	add("neuron", "karpenter.sh/nodepool: neuron", "trn1.2xlarge", `cpu: 7500m, memory: 30Gi, aws.amazon.com/neuron: "1"`,
		`{key: aws.amazon.com/neuron, value: "true", effect: NoSchedule}`, `cpu: "4", memory: 16Gi, aws.amazon.com/neuron: "1"`)
	add("rack", "example.com/pool: notebooks", "rack", `cpu: "47", memory: 180Gi, example.com/npu: "4"`, `{key: example.com/npu, effect: NoSchedule}`, `cpu: "4", memory: 16Gi, example.com/npu: "1"`)
	text.WriteString("---\n{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: notebooks}, status: {conditions: [{type: Ready, status: \"True\"}]}}\n")
	r.add(t, "cluster.yaml", text.String())
	assert.Empty(t, r.sound(t, values))
}
