package audit

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// placeholder is a Deployment with parts of its pod spec and labels of its own.
func placeholder(name, labels, spec string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: overprovisioning, labels: {` + labels + `}}
spec:
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec: {containers: [{name: pause, image: "registry.k8s.io/pause:3.9", resources: {requests: {cpu: 1}}}], ` + spec + `}
---`
}

func nodePool(name, spec string) string {
	return `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: ` + name + `}
spec: {template: {metadata: {labels: {team: ` + name + `}}, spec: {` + spec + `}}}
---`
}

const (
	standard = "priorityClassName: overprovisioning-placeholder"
	large    = `requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [ml.m5.12xlarge, ml.m5.24xlarge]}]`
	small    = `requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [ml.m5.large]}]`
	gpu      = `taints: [{key: nvidia.com/gpu, value: "true", effect: NoSchedule}]`
)

func ofType(name string) string {
	return `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node.kubernetes.io/instance-type, operator: In, values: [` + name + `]}]}]}}}`
}

func inferred(t *testing.T, text string) (*config.WarmPoolConfiguration, []string, *cluster.Snapshot) {
	t.Helper()
	facts, _, err := manifest.Read([]string{"-"}, strings.NewReader(text))
	require.NoError(t, err)
	cfg, notes := Infer(facts)
	if len(cfg.Pools) > 0 {
		assert.Empty(t, config.Validate(cfg, policy.IDs()), "what is inferred is a configuration that could be written")
	}
	return cfg, notes, facts
}

func TestInferPools(t *testing.T) {
	type pools map[string][]string // by name: NodePools, or key=value of the node label
	for name, test := range map[string]struct {
		objects string
		want    pools
	}{
		"the NodePool's own label": {
			placeholder("a", "", standard+", nodeSelector: {karpenter.sh/nodepool: x}") + nodePool("x", "") + nodePool("z", ""), pools{"x": {"x"}},
		},
		"a NodePool that is not there": {
			placeholder("a", "", standard+", nodeSelector: {karpenter.sh/nodepool: gone}") + nodePool("z", ""), pools{"gone": {"gone"}},
		},
		"an instance type": {
			placeholder("a", "", standard+", "+ofType("ml.m5.24xlarge")) + nodePool("x", large) + nodePool("z", small), pools{"x": {"x"}},
		},
		"an instance type of two NodePools": {
			placeholder("a", "", standard+", "+ofType("ml.m5.24xlarge")) + nodePool("x", large) + nodePool("z", large), pools{"x": {"x", "z"}},
		},
		"a label of the NodePool's template": {
			placeholder("a", "", standard+", nodeSelector: {team: z}") + nodePool("x", "") + nodePool("z", ""), pools{"z": {"z"}},
		},
		"the pool label gives the name": {
			placeholder("a", "warmpool.sh/pool: cpu", "nodeSelector: {karpenter.sh/nodepool: x}") + nodePool("x", ""), pools{"cpu": {"x"}},
		},
		"one label, two NodePools": {
			placeholder("a", "warmpool.sh/pool: cpu", "nodeSelector: {karpenter.sh/nodepool: x}") +
				placeholder("b", "warmpool.sh/pool: cpu", "nodeSelector: {karpenter.sh/nodepool: z}"), pools{"cpu": {"x", "z"}},
		},
		"two labels, one NodePool: nodes belong to one pool": {
			placeholder("a", "warmpool.sh/pool: cpu", "nodeSelector: {karpenter.sh/nodepool: x}") +
				placeholder("b", "warmpool.sh/pool: other", "nodeSelector: {karpenter.sh/nodepool: x}"), pools{"cpu": {"x"}},
		},
		"a third placeholder joins two pools": {
			placeholder("a", "", standard+", nodeSelector: {karpenter.sh/nodepool: x}") + placeholder("b", "", standard+", nodeSelector: {karpenter.sh/nodepool: z}") +
				placeholder("c", "", standard+`, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/nodepool, operator: In, values: [x, z]}]}]}}}`),
			pools{"x": {"x", "z"}},
		},
		"the only NodePool": {
			placeholder("a", "", standard) + nodePool("x", ""), pools{"x": {"x"}},
		},
		"the only NodePool whose taints are tolerated": {
			placeholder("a", "", standard) + nodePool("x", "") + nodePool("z", gpu), pools{"x": {"x"}},
		},
		"tolerated taints tell": {
			placeholder("a", "", standard+", tolerations: [{key: nvidia.com/gpu, operator: Exists}]") + nodePool("x", "") + nodePool("z", gpu), pools{"z": {"z"}},
		},
		"two NodePools would do": {
			placeholder("a", "", standard) + nodePool("x", "") + nodePool("z", ""), pools{},
		},
		"no Karpenter, a node label": {
			placeholder("a", "", standard+", nodeSelector: {example.com/pool: notebooks, kubernetes.io/os: linux}"), pools{"notebooks": {"example.com/pool=notebooks"}},
		},
		"no Karpenter, an instance type": {
			placeholder("a", "", standard+", "+ofType("ml.m5.large")), pools{"ml.m5.large": {"node.kubernetes.io/instance-type=ml.m5.large"}},
		},
		"two pools of the same label value": {
			placeholder("a", "", standard+", nodeSelector: {example.com/a: warm}") + placeholder("b", "", standard+", nodeSelector: {example.com/b: warm}"),
			pools{"warm": {"example.com/a=warm"}, "warm-2": {"example.com/b=warm"}},
		},
		"a Workspace's Deployment is no placeholder": {
			strings.Replace(placeholder("a", "warmpool.sh/pool: cpu", "nodeSelector: {karpenter.sh/nodepool: x}"), "labels: {app: a}", "labels: {app: a, workspace.jupyter.org/workspace-name: w}", 1), pools{},
		},
		"placeholders of another guide": {
			"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -1000\n---" +
				placeholder("a", "", "priorityClassName: low, nodeSelector: {karpenter.sh/nodepool: x}"), pools{"x": {"x"}},
		},
		"work of low priority is no placeholder": {
			strings.Replace("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -1000\n---"+
				placeholder("a", "", "priorityClassName: low, nodeSelector: {karpenter.sh/nodepool: x}"), "registry.k8s.io/pause:3.9", "batch:1", 1), pools{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, notes, _ := inferred(t, test.objects)
			got := pools{}
			for _, p := range cfg.Pools {
				got[p.Name] = p.NodePools
				if p.NodeLabel != nil {
					got[p.Name] = []string{p.NodeLabel.Key + "=" + strings.Join(p.NodeLabel.Values, ",")}
				}
				assert.Contains(t, strings.Join(notes, "\n"), "pool "+p.Name+" (inferred")
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestInferWhatPoolsAreFor(t *testing.T) {
	const template = `
apiVersion: workspace.jupyter.org/v1alpha1
kind: WorkspaceTemplate
metadata: {name: %name, namespace: shared}
spec: {defaultImage: "%image", defaultResources: {limits: {%limits}}}
---`
	of := func(name, image, limits string) string {
		return strings.NewReplacer("%name", name, "%image", image, "%limits", limits).Replace(template)
	}
	objects := strings.Replace(placeholder("cpu", "", standard+`, nodeSelector: {karpenter.sh/nodepool: x}, initContainers: [{name: pull-workspace-image, image: "r/nb:1"}]`), "cpu: 1", "cpu: 5", 1) +
		strings.Replace(placeholder("gpu", "", standard+", nodeSelector: {karpenter.sh/nodepool: z}"), "requests: {cpu: 1}", "limits: {nvidia.com/gpu: 1}", 1) +
		nodePool("x", "") + nodePool("z", gpu) + of("a", "r/nb:1", "cpu: 1") + of("b", "r/other:1", "cpu: 1") + of("c", "r/gpu:1", "nvidia.com/gpu: 1") + `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {karpenter.sh/nodepool: x}}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 58}, conditions: [{type: Ready, status: "True"}]}
`
	cfg, _, _ := inferred(t, objects)
	require.Len(t, cfg.Pools, 2)
	x, z := cfg.Pools[0], cfg.Pools[1]
	assert.Equal(t, []config.TemplateRef{{Namespace: "shared", Name: "a"}}, x.Templates, "by the image that is pre-pulled")
	assert.Equal(t, config.Exclusive, x.Sizing.Mode, "5 of 8 cpu")
	assert.Equal(t, []string{"nvidia.com/gpu"}, z.Accelerators)
	assert.Equal(t, []config.TemplateRef{{Namespace: "shared", Name: "c"}}, z.Templates, "by the accelerator")
	assert.Equal(t, config.Coexist, z.Sizing.Mode, "no node tells")
	assert.Equal(t, "overprovisioning", cfg.Placeholders.Namespace)
}

func TestInferNothing(t *testing.T) {
	cfg, notes := Infer(&cluster.Snapshot{})
	assert.Empty(t, cfg.Pools)
	assert.Empty(t, notes)
	cfg, notes, _ = inferred(t, placeholder("a", "", standard))
	assert.Empty(t, cfg.Pools)
	assert.Equal(t, []string{"no pool for Deployment overprovisioning/a: it names no NodePool, instance type or other node label"}, notes)
}

// Whoever built the pattern by hand needs no configuration.
func TestInferFromTheGuide(t *testing.T) {
	text, err := os.ReadFile("../testdata/guide.yaml")
	require.NoError(t, err)
	cfg, _, facts := inferred(t, string(text)+"\n---"+nodePool("spaces-cpu", large))
	require.Len(t, cfg.Pools, 1)
	assert.Equal(t, []string{"spaces-cpu"}, cfg.Pools[0].NodePools)
	evaluator, err := policy.New(cfg, facts, sampleTime)
	require.NoError(t, err)
	findings, objects := evaluator.Audit()
	assert.Equal(t, 1, objects)
	report := New(findings, objects, nil)
	var rules []string
	for _, f := range report.Findings {
		rules = append(rules, f.Rule)
	}
	assert.Subset(t, rules, []string{"placeholder-pool", "placeholder-image-tag", "placeholder-rollout", "placeholder-size"})
}
