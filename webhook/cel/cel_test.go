package cel_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/generate"
	"warmpool.sh/webhook/cel"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

func newPlacement(t *testing.T, document string, facts *cluster.Snapshot) (*cel.Placement, error) {
	t.Helper()
	cfg, err := config.Load([]byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"+document), policy.IDs())
	require.NoError(t, err)
	e, err := policy.New(cfg, facts, time.Unix(0, 0))
	require.NoError(t, err)
	return cel.NewPlacement(e, "warmpool-system")
}

// The policy would place pods of all namespaces: there is none then.
func TestNamespaceSelectorsTakeTheWebhook(t *testing.T) {
	_, err := newPlacement(t, "pools: [{name: cpu, nodePools: [cpu], namespaceSelector: {matchLabels: {team: a}}}]", &cluster.Snapshot{})
	assert.ErrorContains(t, err, "pool cpu has a namespaceSelector")
}

// What is printed is what an API server is given: the text and the objects agree.
func TestYAML(t *testing.T) {
	p, err := newPlacement(t, `
workspaces: {selector: {matchLabels: {notebook: "yes"}}}
pools: [{name: cpu, nodePools: [cpu]}]
exemptions: [{rules: [workspace-tolerations], namespace: team, name: w1, reason: r, until: 2030-01-31}, {rules: [workspace-tolerations], namespace: team, name: no name, reason: r}]`,
		&cluster.Snapshot{})
	require.NoError(t, err)
	text, err := p.YAML()
	require.NoError(t, err)
	documents := strings.Split(string(text), "\n---\n")
	require.Len(t, documents, 3)
	var parameters corev1.ConfigMap
	var mutating admissionv1.MutatingAdmissionPolicy
	var binding admissionv1.MutatingAdmissionPolicyBinding
	for i, object := range []any{&parameters, &mutating, &binding} {
		require.NoError(t, yaml.UnmarshalStrict([]byte(documents[i]), object))
	}
	assert.Equal(t, p.Parameters, &parameters)
	assert.Equal(t, p.Policy, &mutating)
	assert.Equal(t, p.Binding, &binding)
	assert.Equal(t, map[string]string{"notebook": "yes"}, mutating.Spec.MatchConstraints.ObjectSelector.MatchLabels)
	assert.Equal(t, mutating.Name, binding.Spec.PolicyName)
	assert.Equal(t, parameters.Name, binding.Spec.ParamRef.Name)
	assert.Equal(t, "workspace-tolerations team w1", parameters.Data["exemptions"])
	assert.Len(t, p.Gaps, 3, "NodePools and templates are not known, and an exemption ends: %q", p.Gaps)
}

// The same facts give the same text, whatever the order of maps.
func TestDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		var first string
		for i := range 5 {
			r := generate.New(seed)
			e, err := policy.New(r.Config(), r.Snapshot(), time.Unix(0, 0))
			require.NoError(t, err)
			p, err := cel.NewPlacement(e, "warmpool-system")
			require.NoError(t, err)
			text, err := p.YAML()
			require.NoError(t, err)
			if i == 0 {
				first = string(text)
			}
			require.Equal(t, first, string(text))
		}
	}
}

// The policy takes short ways where the parameters have them: for pods that ask for one usual device, and for placed ones.
func TestShortWays(t *testing.T) {
	nodePools := cluster.Known(map[string]*cluster.NodePool{
		"gpu": {Name: "gpu", Taints: []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}}, "more": {Name: "more"}, "npu": {Name: "npu"},
	})
	p, err := newPlacement(t, `pools:
- {name: gpu, nodePools: [gpu, more], accelerators: ["nvidia.com/*"]}
- {name: npu, nodePools: [npu], accelerators: [example.com/npu, "nvidia.com/g*"]}`, &cluster.Snapshot{NodePools: nodePools})
	require.NoError(t, err)
	data := p.Parameters.Data
	assert.Equal(t, "gpu npu", data["device_nvidia.com_gpu"])
	assert.Equal(t, "npu", data["device_example.com_npu"])
	assert.Contains(t, data, "device_amd.com_gpu")
	assert.Empty(t, data["device_amd.com_gpu"], "an accelerator that no pool has")
	assert.Equal(t, "karpenter.sh/nodepool\nteam a NoSchedule Equal\nnvidia.com/gpu  NoSchedule Exists", data["placed_gpu_more"])
	assert.Contains(t, data, "placed_npu")

	p, err = newPlacement(t, "pools: [{name: a, nodePools: [a]}, {name: b, nodeLabel: {key: k, values: [v]}, autoscaler: None}]", &cluster.Snapshot{})
	require.NoError(t, err)
	assert.NotContains(t, p.Parameters.Data, "placed_v", "nodes of the other pool may have the label too")
}

// What the lines of words cannot say is refused: it must not become another pool.
func TestRefused(t *testing.T) {
	requirement := func(values ...string) *cluster.Snapshot {
		return &cluster.Snapshot{NodePools: cluster.Known(map[string]*cluster.NodePool{"cpu": {
			Name: "cpu", Requirements: []corev1.NodeSelectorRequirement{{Key: "team", Operator: corev1.NodeSelectorOpIn, Values: values}},
		}})}
	}
	for _, value := range []string{"a b", "&", "a\nb"} {
		_, err := newPlacement(t, "pools: [{name: cpu, nodePools: [cpu]}]", requirement(value))
		require.ErrorContains(t, err, "cpu.nodes", "%q", value)
	}
	_, err := newPlacement(t, "pools: [{name: cpu, nodePools: [cpu]}]", requirement("", "a"))
	require.NoError(t, err, "a label without a value")
	_, err = newPlacement(t, `pools: [{name: npu, nodePools: [npu], accelerators: ["example.com/[z-a]"]}]`, &cluster.Snapshot{})
	require.ErrorContains(t, err, "npu.accelerators")
	many := map[string]*cluster.NodePool{}
	var names []string
	for i := range 101 {
		name := fmt.Sprintf("n%d", i)
		many[name], names = &cluster.NodePool{Name: name}, append(names, name)
	}
	_, err = newPlacement(t, "pools: [{name: cpu, nodePools: ["+strings.Join(names, ", ")+"]}]", &cluster.Snapshot{NodePools: cluster.Known(many)})
	require.ErrorContains(t, err, "cpu.nodes: 2020 labels of 101 NodePools, 20 for each at least, may cost more than the API server lets a policy cost (up to 2000 do not)")
	_, err = newPlacement(t, "pools: [{name: cpu, nodePools: [cpu]}]", requirement(strings.Repeat("x", 1<<20)))
	require.ErrorContains(t, err, "1048576")
}

// A rule is exported where it denies in every pool, with who is exempt from it.
func TestPlaceholders(t *testing.T) {
	export := func(document string) *cel.Placeholders {
		cfg, err := config.Load([]byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"+document), policy.IDs())
		require.NoError(t, err)
		e, err := policy.New(cfg, &cluster.Snapshot{}, time.Unix(0, 0))
		require.NoError(t, err)
		p, err := cel.NewPlaceholders(e, "warmpool-system")
		require.NoError(t, err)
		return p
	}
	p := export(`
placeholders: {priorityClassName: low}
pools: [{name: cpu, nodePools: [cpu]}]
exemptions: [{rules: [placeholder-pull-command], namespace: a, name: b, reason: r}]`)
	require.Len(t, p.Policy.Spec.Validations, 3)
	assert.Contains(t, p.Policy.Spec.MatchConditions[0].Expression, "== 'low'")
	assert.Contains(t, p.Policy.Spec.Validations[2].Expression, `key in ["a/b"]`)
	text, err := p.YAML()
	require.NoError(t, err)
	assert.Contains(t, string(text), "(rule placeholder-pull-command)")

	p = export("pools: [{name: cpu, nodePools: [cpu]}, {name: old, nodeLabel: {key: k, values: [v]}, autoscaler: None, rules: {placeholder-pull-command: Warn}}]")
	require.Len(t, p.Policy.Spec.Validations, 1)
	assert.Contains(t, p.Policy.Spec.Validations[0].MessageExpression, "placeholder-anti-affinity")
	assert.Nil(t, export("pools: [{name: cpu, nodeLabel: {key: k, values: [v]}, autoscaler: None}]\nrules: {placeholder-pull-command: Off, placeholder-anti-affinity: Warn}"))
}

// TestAliases: the policy reads the labels that placement reads as others.
func TestAliases(t *testing.T) {
	p, err := newPlacement(t, `pools: [{name: cpu, nodePools: [cpu]}]`, &cluster.Snapshot{})
	require.NoError(t, err)
	for _, v := range p.Policy.Spec.Variables {
		if v.Name == "aliases" {
			pairs := regexp.MustCompile(`'([^']+)': *'([^']+)'`).FindAllStringSubmatch(v.Expression, -1)
			assert.Len(t, pairs, 8)
			for _, pair := range pairs {
				assert.Equal(t, placement.NormalKey(pair[1]), pair[2])
				assert.NotEqual(t, pair[1], pair[2])
			}
			return
		}
	}
	assert.Fail(t, "no aliases")
}
