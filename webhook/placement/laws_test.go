package placement_test

import (
	"encoding/json"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"warmpool.sh/test/harness/generate"
	"warmpool.sh/webhook/placement"
)

// FuzzPlacement checks the laws of placement on random clusters and pods.
func FuzzPlacement(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := generate.New(seed)
		cfg := r.Config()
		pools := placement.Compile(cfg, r.Snapshot(), placement.Seen{})
		pod := r.WorkspacePod()
		before := pod.DeepCopy()
		choice := pools.ForPod(pod.Labels, &pod.Spec)
		if choice.Pool == nil {
			assert.NotEmpty(t, choice.Problem)
			return
		}
		after, patch := place(choice.Pool, pod)
		assert.Equal(t, before, pod, "the input is unchanged")
		assertPatchMakes(t, pod, patch, after)
		_, second := place(choice.Pool, after)
		assert.Empty(t, second, "a second pass changes nothing")
		assertEntriesIntact(t, &before.Spec, &after.Spec)
		assertNodes(t, choice.Pool, &before.Spec, &after.Spec)
		assertTolerations(t, choice.Pool, &before.Spec, &after.Spec)
		assertPreference(t, &before.Spec, &after.Spec)
	})
}

const (
	placeholders = "overprovisioning" // their namespace
	image        = "registry.example/nb:1"
)

func place(pool *placement.Pool, pod *corev1.Pod) (*corev1.Pod, placement.Patch) {
	after := *pod
	var patch placement.Patch
	pool.Require(&after.Spec, "/spec", &patch)
	pool.Tolerate(&after.Spec, "/spec", &patch)
	if !placement.MindsPlaceholders(&after.Spec, placeholders) {
		placement.Prefer(&after.Spec, "/spec", placement.WarmFirst(placeholders, image), &patch)
	}
	return &after, patch
}

// assertPatchMakes applies the patch by a strict RFC 6902 engine.
func assertPatchMakes(t *testing.T, from any, patch placement.Patch, to any) {
	t.Helper()
	document, err := json.Marshal(from)
	require.NoError(t, err)
	want, err := json.Marshal(to)
	require.NoError(t, err)
	if len(patch) > 0 {
		operations, err := patch.JSON()
		require.NoError(t, err)
		decoded, err := jsonpatch.DecodePatch(operations)
		require.NoError(t, err)
		document, err = decoded.Apply(document)
		require.NoError(t, err, "%s", operations)
	}
	assert.JSONEq(t, string(want), string(document))
}

// assertEntriesIntact checks that everything that was there still stands, in its order.
func assertEntriesIntact(t *testing.T, before, after *corev1.PodSpec) {
	t.Helper()
	require.GreaterOrEqual(t, len(after.Tolerations), len(before.Tolerations))
	assert.True(t, equality.Semantic.DeepEqual(before.Tolerations, after.Tolerations[:len(before.Tolerations)]), "tolerations intact")
	stripped := after.DeepCopy()
	stripped.Tolerations = before.Tolerations
	stripped.Affinity = before.Affinity
	assert.Equal(t, before, stripped, "nothing but tolerations and affinity changes")
	if before.Affinity == nil {
		return
	}
	affinity := after.Affinity.DeepCopy()
	affinity.PodAffinity = before.Affinity.PodAffinity // see assertPreference
	if before.Affinity.NodeAffinity == nil {
		affinity.NodeAffinity = nil
	} else if required := before.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required == nil {
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	} else {
		terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		require.Len(t, terms, len(required.NodeSelectorTerms))
		for i, term := range required.NodeSelectorTerms {
			require.GreaterOrEqual(t, len(terms[i].MatchExpressions), len(term.MatchExpressions))
			terms[i].MatchExpressions = terms[i].MatchExpressions[:len(term.MatchExpressions)]
		}
	}
	assert.True(t, equality.Semantic.DeepEqual(before.Affinity, affinity), "affinity apart from what was added")
}

// assertPreference: one term is added at the end, where none was about placeholders.
func assertPreference(t *testing.T, before, after *corev1.PodSpec) {
	t.Helper()
	var was, is corev1.PodAffinity
	if before.Affinity != nil && before.Affinity.PodAffinity != nil {
		was = *before.Affinity.PodAffinity
	}
	if after.Affinity != nil && after.Affinity.PodAffinity != nil {
		is = *after.Affinity.PodAffinity
	}
	assert.Equal(t, was.RequiredDuringSchedulingIgnoredDuringExecution, is.RequiredDuringSchedulingIgnoredDuringExecution)
	preferred := slices.Clone(was.PreferredDuringSchedulingIgnoredDuringExecution)
	if !placement.MindsPlaceholders(before, placeholders) {
		preferred = append(preferred, *placement.WarmFirst(placeholders, image))
	}
	assert.Equal(t, preferred, is.PreferredDuringSchedulingIgnoredDuringExecution)
}

// assertNodes asks the scheduler's own code on which nodes the pod may run, before and after.
func assertNodes(t *testing.T, pool *placement.Pool, before, after *corev1.PodSpec) {
	t.Helper()
	fit := pool.Fit(before)
	was := nodeaffinity.NewRequiredNodeAffinity(before.NodeSelector, before.Affinity)
	is := nodeaffinity.NewRequiredNodeAffinity(after.NodeSelector, after.Affinity)
	for _, node := range nodes() {
		// An error (Gt on text) means no match; a match of another term counts all the same.
		wasMatch, _ := was.Match(node)
		isMatch, _ := is.Match(node)
		inPool := slices.Contains(pool.Requirement.Values, node.Labels[pool.Requirement.Key])
		assert.False(t, isMatch && !wasMatch, "node %v became possible", node.Labels)
		if inPool || fit.Conflict {
			assert.Equal(t, wasMatch, isMatch, "node %v of the pool, or of a pod in conflict", node.Labels)
		} else if len(fit.Excluded) == 0 {
			assert.False(t, isMatch, "node %v is outside the pool", node.Labels)
		}
	}
}

// nodes are nodes of every combination of the generator's labels.
func nodes() []*corev1.Node {
	var all []*corev1.Node
	for _, nodePool := range []string{"", "a", "a2", "b", "c", "elsewhere"} {
		for _, instanceType := range []string{"", "ml.m5.4xlarge", "ml.g5.8xlarge"} {
			for _, team := range []string{"", "x", "y", "7"} {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kubernetes.io/arch": "amd64"}}}
				for key, value := range map[string]string{"karpenter.sh/nodepool": nodePool, corev1.LabelInstanceTypeStable: instanceType, "team": team} {
					if value != "" {
						node.Labels[key] = value
					}
				}
				all = append(all, node)
			}
		}
	}
	return all
}

func assertTolerations(t *testing.T, pool *placement.Pool, before, after *corev1.PodSpec) {
	t.Helper()
	added := after.Tolerations[len(before.Tolerations):]
	untolerated, _ := pool.Untolerated(after.Tolerations)
	if pool.Fit(before).Conflict {
		assert.Empty(t, added, "a pod in conflict is left alone")
		return
	}
	assert.Empty(t, untolerated)
	for i, toleration := range added {
		assert.NotEmpty(t, toleration.Key, "never keyless")
		assert.Nil(t, toleration.TolerationSeconds)
		covers := slices.ContainsFunc(pool.Taints, func(taint corev1.Taint) bool {
			return taint.Effect == toleration.Effect && placement.Tolerates(&toleration, &taint)
		})
		assert.True(t, covers, "%v covers a taint of the pool", toleration)
		assert.NotContains(t, added[:i], toleration, "no duplicates")
	}
}
