package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/config"
)

// Beside the example cluster: NodePools with the taints that tests are about.
const moreNodePools = `
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: cpu-a}, spec: {template: {spec: {NODECLASS, requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: disk, operator: Exists}]}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu-a}
spec:
  template:
    spec:
      NODECLASS
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: disk, operator: Exists}]
      taints:
      - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
      - {key: dedicated, value: notebooks, effect: NoSchedule}
      - {key: example.com/rather-not, effect: PreferNoSchedule}
      startupTaints:
      - {key: example.com/starting, effect: NoSchedule}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: evicting}
spec: {template: {spec: {NODECLASS, requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: disk, operator: Exists}], taints: [{key: example.com/owner, value: notebooks, effect: NoExecute}]}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: teams}
spec:
  template:
    spec:
      NODECLASS
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: disk, operator: Exists}]
      taints:
      - {key: example.com/team, value: a, effect: NoSchedule}
      - {key: example.com/team, value: b, effect: NoSchedule}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: starting}, spec: {template: {spec: {NODECLASS, requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: disk, operator: Exists}]}}}}
`

const nodeClass = "nodeClassRef: {group: karpenter.sagemaker.amazonaws.com, kind: HyperpodNodeClass, name: spaces}"

// No node tells what these pools offer; the configuration says it, but for two.
var morePools = []config.Pool{
	{Name: "cpu-a", NodePools: []string{"cpu-a"}, Sizing: roomy},
	{Name: "gpu-a", NodePools: []string{"gpu-a"}, Accelerators: []string{"nvidia.com/*"}, Sizing: roomy},
	{Name: "evicting", NodePools: []string{"evicting"}, Sizing: roomy},
	{Name: "teams", NodePools: []string{"teams"}, Sizing: roomy},
	{Name: "starting", NodePools: []string{"starting"}},
	{Name: "idle", NodePools: []string{"idle"}},
}

var roomy = config.Sizing{Allocatable: corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"), gpu: resource.MustParse("8"),
}}

// baseConfiguration is the example cluster's with more pools: what is in force unless a test changes it.
var baseConfiguration config.WarmPoolConfiguration

// furnish applies the example cluster and more NodePools, and puts a configuration with all of them in force.
func furnish(ctx context.Context) error {
	root, err := install.Root()
	if err != nil {
		return err
	}
	examples := filepath.Join(root, "manifests", "examples", "fine")
	objects, err := decodeText(strings.ReplaceAll(moreNodePools, "NODECLASS", nodeClass))
	if err != nil {
		return err
	}
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "nodes.yaml", "templates.yaml"} {
		more, err := decodeFile(filepath.Join(examples, name))
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	// The CRD of node classes is the cloud provider's.
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "HyperpodNodeClass" })
	if err := cp.Apply(ctx, objects...); err != nil {
		return err
	}
	example, err := os.ReadFile(filepath.Join(examples, "warmpool.yaml"))
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(example, &baseConfiguration); err != nil {
		return err
	}
	// Placeholders of these tests ask for little, whatever the pool's mode, and each test has namespaces of its own for them.
	baseConfiguration.Rules = map[string]config.Action{"placeholder-sizing-mode": config.Off, "placeholder-elsewhere": config.Off}
	baseConfiguration.Pools = append(baseConfiguration.Pools, morePools...)
	if err := writeConfiguration(&baseConfiguration); err != nil {
		return err
	}
	return waitForFacts(ctx)
}

func decodeFile(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := decodeText(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

func decodeText(text string) ([]*unstructured.Unstructured, error) {
	return controlplane.Decode(strings.NewReader(text))
}

func writeConfiguration(cfg *config.WarmPoolConfiguration) error {
	content, err := yaml.Marshal(cfg)
	if err != nil {
		return err
	}
	return os.WriteFile(warmpool.ConfigFile, content, 0o600)
}

// waitForFacts returns when a dry run shows that the configuration and the NodePools are in force.
func waitForFacts(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(cp.Config)
	if err != nil {
		return err
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Labels: map[string]string{workspaceLabel: "probe", "warmpool.sh/pool": "teams"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "example.com/notebook:1"}}},
	}
	last := errors.New("not asked yet")
	err = wait.PollUntilContextTimeout(ctx, step, limit, true, func(ctx context.Context) (bool, error) {
		var got *corev1.Pod
		got, last = clients.CoreV1().Pods("default").Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if last != nil {
			return false, nil
		}
		last = fmt.Errorf("tolerations are %v", got.Spec.Tolerations)
		return slices.Contains(got.Spec.Tolerations, corev1.Toleration{Key: "example.com/team", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}), nil
	})
	if err != nil {
		return fmt.Errorf("wait until warmpool places pods: %w: %w", err, last)
	}
	return nil
}
