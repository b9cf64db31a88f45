package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/test/harness/generate"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// TestGenerated gives random pods to random clusters of 1 to 20 pools.
func TestGenerated(t *testing.T) {
	worlds, pods := 20, 25
	if *long {
		worlds, pods = 40, 500
	}
	all := make([]*world, worlds)
	for i := range all {
		r := generate.New(*seed + uint64(i))
		cfg, facts := clusterOf(r, 1+i%20)
		all[i] = newWorld(t, fmt.Sprintf("seed-%d", *seed+uint64(i)), cfg, facts)
		all[i].seed = *seed + uint64(i)
	}
	var compared, changed, refused atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d pods of %d clusters: %d changed; %d more that no API server admits", compared.Load(), worlds, changed.Load(), refused.Load())
		assert.EqualValues(t, worlds*pods, compared.Load())
		assert.Greater(t, 3*changed.Load(), compared.Load(), "many pods have something to fill in")
	})
	// Some at a time: each binding in force slows all pods down.
	for some := range slices.Chunk(all, 4) {
		t.Run(some[0].namespace, func(t *testing.T) {
			install(t, some...)
			for _, w := range some {
				t.Run(w.namespace, func(t *testing.T) {
					t.Parallel()
					r := generate.New(1<<32 + w.seed)
					for range pods {
						w.compare(t, r, &compared, &changed, &refused, int64(worlds*pods))
					}
				})
			}
		})
	}
}

// compare tries random pods until the API server admits one.
func (w *world) compare(t *testing.T, r generate.Rand, compared, changed, refused *atomic.Int64, most int64) {
	t.Helper()
	for {
		body := podOf(t, r, w)
		result := w.try(t, body)
		require.Empty(t, result.fault, "%s", lazily(func() string { return w.explain(t, body) }))
		if result.refused == "" {
			compared.Add(1)
			if result.changed {
				changed.Add(1)
			}
			return
		}
		require.LessOrEqual(t, refused.Add(1), most, "too many pods are refused, lastly: %s", result.refused)
	}
}

// lazily is a text that is made up only if it is printed.
type lazily func() string

func (f lazily) String() string { return f() }

// clusterOf joins generated clusters to one with so many pools.
func clusterOf(r generate.Rand, pools int) (*config.WarmPoolConfiguration, *cluster.Snapshot) {
	cfg, facts := r.Config(), r.Snapshot()
	cfg.Pools = cfg.Pools[:min(pools, len(cfg.Pools))]
	nodePools := maps.Collect(facts.NodePools.All())
	known := facts.NodePools.Known()
	for n := 1; len(cfg.Pools) < pools; n++ {
		more, others := r.Config(), r.Snapshot()
		suffix := fmt.Sprintf("-%d", n)
		for _, pool := range more.Pools[:min(pools-len(cfg.Pools), len(more.Pools))] {
			pool.Name += suffix
			for i := range pool.NodePools {
				pool.NodePools[i] += suffix
			}
			if pool.NodeLabel != nil {
				pool.NodeLabel.Key += suffix
			}
			cfg.Pools = append(cfg.Pools, pool)
		}
		for name, np := range others.NodePools.All() {
			np.Name = name + suffix
			nodePools[np.Name] = np
		}
	}
	for _, np := range nodePools {
		vary(r, np)
	}
	if known {
		facts.NodePools = cluster.Known(nodePools)
	}
	for i := range cfg.Pools {
		if r.IntN(4) == 0 {
			cfg.Pools[i].Sizing.Mode = config.Exclusive
		}
		if r.IntN(8) == 0 {
			cfg.Pools[i].Rules = map[string]config.Action{pick(r, fillingRules): config.Off}
		}
	}
	return cfg, facts
}

var fillingRules = []string{"workspace-pool-affinity", "workspace-tolerations", "workspace-warm-first"}

// vary gives a NodePool requirements of all operators, several of one label at times.
func vary(r generate.Rand, np *cluster.NodePool) {
	for range r.IntN(3) {
		term := r.PodSpec().Affinity
		if term == nil || term.NodeAffinity == nil || term.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			continue
		}
		for _, term := range term.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, requirement := range term.MatchExpressions {
				if requirement.Key != config.NodePoolLabel {
					np.Requirements = append(np.Requirements, requirement)
					break
				}
			}
		}
	}
}

func pick[T any](r generate.Rand, from []T) T { return from[r.IntN(len(from))] }

// podOf is a random Workspace pod that mostly is valid, as JSON, in which null stands for some parts that are absent.
func podOf(t *testing.T, r generate.Rand, w *world) []byte {
	t.Helper()
	pod := r.WorkspacePod()
	spec := &pod.Spec
	if pool := pick(r, w.config.Pools); r.IntN(3) == 0 {
		key, values := pool.Label()
		switch r.IntN(4) {
		case 0:
			pod.Labels["warmpool.sh/pool"] = pool.Name
		case 1:
			spec.NodeSelector = map[string]string{key: pick(r, values)}
		case 2:
			pod.Labels["workspace.jupyter.org/template-name"] = "common"
			pod.Labels["workspace.jupyter.org/template-namespace"] = "shared"
		case 3:
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: pick(r, []string{"dedicated", "nvidia.com/gpu"}), Operator: corev1.TolerationOpExists})
		}
	}
	switch r.IntN(6) {
	case 0: // a sidecar with a device
		sidecar := r.PodSpec().Containers[0]
		sidecar.Name, sidecar.RestartPolicy = "sidecar", new(corev1.ContainerRestartPolicyAlways)
		spec.InitContainers = append(spec.InitContainers, sidecar)
	case 1:
		other := r.PodSpec().Containers[0]
		other.Name, other.Image = "workspace", spec.Containers[0].Image
		spec.Containers = append(spec.Containers, other)
	case 2:
		spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		spec.Containers[0].Resources.Requests = nil
	}
	if r.IntN(30) == 0 {
		spec.NodeName = "n0"
	}
	fix(r, spec)
	if r.IntN(4) == 0 {
		o := w.evaluator.Pod(pod, w.namespace)
		w.evaluator.Mutate(o)
		pod = o.Pod.DeepCopy()
		disturb(r, pod, w.config.Pools)
	}
	document, err := json.Marshal(pod)
	require.NoError(t, err)
	return withNulls(t, r, document)
}

// disturb does to a placed pod what others may do to it before it is looked at again; at times nothing.
func disturb(r generate.Rand, pod *corev1.Pod, pools []config.Pool) {
	affinity := pod.Spec.Affinity
	var terms []corev1.NodeSelectorTerm
	if affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	tolerations := pod.Spec.Tolerations
	switch r.IntN(9) {
	case 0:
		if len(tolerations) > 0 {
			pod.Spec.Tolerations = slices.Delete(tolerations, 0, 1)
		}
	case 1:
		if len(tolerations) > 0 {
			tolerations[len(tolerations)-1].Effect = corev1.TaintEffectPreferNoSchedule
		}
	case 2:
		if len(tolerations) > 0 {
			pod.Spec.Tolerations[0] = corev1.Toleration{Operator: corev1.TolerationOpExists}
		}
	case 3:
		if affinity != nil {
			affinity.PodAffinity = nil
		}
	case 4:
		if len(terms) > 0 {
			affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = append(terms,
				corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpExists}}})
		}
	case 5:
		if len(terms) > 0 && len(terms[0].MatchExpressions) > 0 {
			last := &terms[0].MatchExpressions[len(terms[0].MatchExpressions)-1]
			last.Values = append(slices.Clone(last.Values), "elsewhere")
		}
	case 6:
		pod.Labels["warmpool.sh/pool"] = pick(r, pools).Name
	case 7:
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		pod.Spec.Containers[0].Resources.Requests = nil
	}
}

// fix corrects what the API server would refuse.
func fix(r generate.Rand, spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if containers[i].Image == "" {
				containers[i].Image = "registry.example/x:1"
			}
		}
	}
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		if t.Key == "" {
			t.Operator, t.Value = corev1.TolerationOpExists, ""
		}
		if t.TolerationSeconds != nil {
			t.Effect = corev1.TaintEffectNoExecute
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return
	}
	if required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil && len(required.NodeSelectorTerms) == 0 && r.IntN(10) > 0 {
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
}

// withNulls writes null for some optional parts that a document does not have.
func withNulls(t *testing.T, r generate.Rand, document []byte) []byte {
	t.Helper()
	if r.IntN(3) > 0 {
		return document
	}
	var pod map[string]any
	require.NoError(t, json.Unmarshal(document, &pod))
	null := func(object any, keys ...string) {
		if fields, ok := object.(map[string]any); ok {
			for _, key := range keys {
				if _, there := fields[key]; !there && r.IntN(2) == 0 {
					fields[key] = nil
				}
			}
		}
	}
	spec, _ := pod["spec"].(map[string]any)
	null(pod["metadata"], "annotations", "name")
	null(spec, "tolerations", "nodeSelector", "initContainers", "affinity", "nodeName")
	if affinity, ok := spec["affinity"].(map[string]any); ok {
		null(affinity, "nodeAffinity", "podAffinity", "podAntiAffinity")
		null(affinity["podAffinity"], "preferredDuringSchedulingIgnoredDuringExecution", "requiredDuringSchedulingIgnoredDuringExecution")
		if node, ok := affinity["nodeAffinity"].(map[string]any); ok {
			null(node, "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
			if required, ok := node["requiredDuringSchedulingIgnoredDuringExecution"].(map[string]any); ok {
				terms, _ := required["nodeSelectorTerms"].([]any)
				for _, term := range terms {
					null(term, "matchExpressions", "matchFields")
				}
			}
		}
	}
	containers, _ := spec["containers"].([]any)
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		null(fields["resources"], "limits", "requests")
	}
	document, err := json.Marshal(pod)
	require.NoError(t, err)
	return document
}
