package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// TestCostOfOnePool: the largest pool that is exported, with pods that ask for much, is below the cost as well.
func TestCostOfOnePool(t *testing.T) {
	cfg, facts := largeCluster(1, 90, 21) // and the label of the NodePool
	known := maps.Collect(facts.Templates.All())
	for i := range 980 {
		name := fmt.Sprintf("more-%d", i)
		cfg.Pools[0].Templates = append(cfg.Pools[0].Templates, config.TemplateRef{Namespace: "shared", Name: name})
		known["shared/"+name] = &cluster.WorkspaceTemplate{Namespace: "shared", Name: name, DefaultImage: "registry.example/team/" + name + ":1"}
	}
	facts.Templates = cluster.Known(known)
	w := newWorld(t, "one-pool", cfg, facts)
	install(t, w)
	body, err := json.Marshal(largePod(20, 20, 100, 60, 21))
	require.NoError(t, err)
	result := w.try(t, body)
	assert.Empty(t, result.refused)
	assert.Empty(t, result.fault)
	assert.True(t, result.changed)
}

// TestCost: the API server stops an expression at a cost. Large clusters and large pods stay below it.
func TestCost(t *testing.T) {
	cfg, facts := largeCluster(20, 5, 20)
	w := newWorld(t, "large", cfg, facts)
	install(t, w)
	for name, pod := range map[string]*corev1.Pod{
		"ten terms, fifty tolerations, thirty containers": largePod(10, 10, 50, 30, 20),
		"twice as many of all":                            largePod(20, 20, 100, 60, 20),
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(pod)
			require.NoError(t, err)
			result := w.try(t, body)
			assert.Empty(t, result.refused)
			assert.Empty(t, result.fault)
			assert.True(t, result.changed)
			assert.Equal(t, "pool-19", result.pool)
		})
	}
}

// largeCluster has pools with GPUs of so many NodePools, each of which mentions so many labels.
func largeCluster(pools, nodePools, labels int) (*config.WarmPoolConfiguration, *cluster.Snapshot) {
	cfg := &config.WarmPoolConfiguration{}
	known, templates := map[string]*cluster.NodePool{}, map[string]*cluster.WorkspaceTemplate{}
	for i := range pools {
		pool := config.Pool{Name: fmt.Sprintf("pool-%d", i), Accelerators: []string{"nvidia.com/*", fmt.Sprintf("example.com/npu-%d", i)}}
		for j := range nodePools {
			np := &cluster.NodePool{Name: fmt.Sprintf("nodes-%d-%d", i, j), Labels: map[string]string{}}
			for k := range labels {
				np.Requirements = append(np.Requirements, corev1.NodeSelectorRequirement{
					Key: fmt.Sprintf("example.com/label-%d", k), Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b", "c", fmt.Sprint(j)},
				})
			}
			for k := range 3 {
				np.Taints = append(np.Taints, corev1.Taint{Key: fmt.Sprintf("example.com/taint-%d", k), Value: fmt.Sprint(j), Effect: corev1.TaintEffectNoSchedule})
			}
			known[np.Name] = np
			pool.NodePools = append(pool.NodePools, np.Name)
		}
		for j := range 20 {
			name := fmt.Sprintf("template-%d-%d", i, j)
			pool.Templates = append(pool.Templates, config.TemplateRef{Namespace: "shared", Name: name})
			templates["shared/"+name] = &cluster.WorkspaceTemplate{Namespace: "shared", Name: name, DefaultImage: "registry.example/" + strings.Repeat("image/", 10) + name + ":1"}
		}
		cfg.Pools = append(cfg.Pools, pool)
	}
	config.SetDefaults(cfg)
	return cfg, &cluster.Snapshot{NodePools: cluster.Known(known), Templates: cluster.Known(templates)}
}

// largePod belongs to the last pool. Only the last NodePool suits its terms, so that all are looked at.
func largePod(terms, expressions, tolerations, containers, labels int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w-0", Labels: map[string]string{
		config.WorkspaceLabel: "w", "workspace.jupyter.org/template-namespace": "shared", "workspace.jupyter.org/template-name": "template-19-19",
	}}}
	required := &corev1.NodeSelector{}
	for range terms {
		var term corev1.NodeSelectorTerm
		for i := range expressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: fmt.Sprintf("example.com/label-%d", labels-1-i), Operator: corev1.NodeSelectorOpIn, Values: []string{"d", "e", "4"},
			})
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	for i := range tolerations {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("other-%d", i), Operator: corev1.TolerationOpExists})
	}
	for i := range containers {
		resources := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c-%d", i), Image: "registry.example/" + strings.Repeat("image/", 10) + "template-19-19:1",
			Resources: corev1.ResourceRequirements{Limits: resources, Requests: resources},
		})
	}
	return pod
}
