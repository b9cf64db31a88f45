package startuptaint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const runs = 5

func TestStartupTaint(t *testing.T) {
	l := newLab(t)
	t.Run("experiments", func(t *testing.T) {
		for _, experiment := range []struct {
			name string
			long bool
			run  func(*lab, *testing.T) string
		}{
			{"Empty cold node beside two warm ones, no taint", false, func(l *lab, t *testing.T) string { return l.hole(t, "hole-open") }},
			{"Empty cold node beside two warm ones, with the taint", false, func(l *lab, t *testing.T) string { return l.hole(t, "hole-closed", cold) }},
			{"Node for a Workspace, no placeholder comes to it", false, (*lab).noPlaceholder},
			{"Controller down, the placeholder has pulled", true, (*lab).controllerDown},
			{"GPU node, device plugin without a toleration for the taint", true, (*lab).devicePlugin},
			{"Node that no one needs any more, no taint", true, func(l *lab, t *testing.T) string { return l.unused(t, "unused-open", false) }},
			{"Node that no one needs any more, with the taint", true, func(l *lab, t *testing.T) string { return l.unused(t, "unused-tainted", true) }},
			{"No warm placeholder anywhere, Workspace prefers one", false, (*lab).relaxed},
		} {
			if experiment.long && !*long {
				continue
			}
			t.Run(experiment.name, func(t *testing.T) {
				t.Parallel()
				l.book.note(experiment.name, experiment.run(l, t))
			})
		}
	})
	t.Log("\n" + l.book.table())
	if *update && !t.Failed() {
		l.book.write(t)
	}
}

// hole: two nodes are held by warm placeholders, the third is empty and has the taints. Where does a Workspace go that has
// no room beside a placeholder?
func (l *lab) hole(t *testing.T, name string, taints ...corev1.Taint) string {
	warm := 0
	for run := range runs {
		pool := fmt.Sprintf("%s-%d", name, run)
		for i := range 2 {
			p := placeholderPod(pool, fmt.Sprintf("warm-%d", i), true)
			p.Spec.NodeName = l.handmade(t, pool, i)
			l.create(t, p)
		}
		empty := l.handmade(t, pool, 2, taints...)
		l.waitNodes(t, pool, 3)
		w := workspace(pool, "workspace")
		l.create(t, w)
		if l.bound(t, w) != empty {
			warm++
		}
	}
	wanted := 0
	if len(taints) > 0 {
		wanted = runs
	}
	assert.Equal(t, wanted, warm, "of %d Workspaces on a warm node", runs)
	return fmt.Sprintf("%d of %d Workspaces took a warm node", warm, runs)
}

// noPlaceholder: Karpenter makes a node for a Workspace; whoever counts placeholders adds none.
func (l *lab) noPlaceholder(t *testing.T) string {
	const pool = "lonely"
	l.pool(t, pool, true)
	w := workspace(pool, "workspace")
	l.create(t, w)
	l.waitNodes(t, pool, 1)
	l.neverBound(t, w)
	assert.Len(t, l.nodes(t, pool), 1, "Karpenter takes the node for good and makes no other")
	l.untaint(t, pool)
	l.bound(t, w)
	return "the Workspace stays Pending on its own new node, and Karpenter makes no other, until somebody removes the taint"
}

// controllerDown: everything is as it should be, but no one takes the taint off.
func (l *lab) controllerDown(t *testing.T) string {
	const pool, workspaces = "down", 2
	l.pool(t, pool, true)
	p := placeholderPod(pool, "first", false)
	l.create(t, p)
	l.bound(t, p)
	pods := make([]*corev1.Pod, 0, workspaces)
	for i := range workspaces {
		w := workspace(pool, fmt.Sprintf("workspace-%d", i))
		l.create(t, w)
		l.waitNodes(t, pool, 2+i)
		pods = append(pods, w)
	}
	l.neverBound(t, pods[0])
	assert.Empty(t, l.nodeOf(t, pods[1]))
	count := l.tainted(t, pool)
	assert.Equal(t, 1+workspaces, count)
	return fmt.Sprintf("%d Workspaces Pending, though %d nodes are paid for and one has the image", workspaces, count)
}

// devicePlugin: a GPU is seen by the cluster only when the device plugin's pod runs, and a placeholder that asks for one
// is what would bring the image.
func (l *lab) devicePlugin(t *testing.T) string {
	const pool = "gpu"
	labels := map[string]string{"app": "device-plugin"}
	l.create(t, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "device-plugin"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{poolLabel: pool},
				Tolerations:  []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
				Containers:   []corev1.Container{{Name: "plugin", Image: "example.com/image:1"}},
			}},
		},
	})
	l.handmade(t, pool, 0, corev1.Taint{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}, cold)
	l.waitNodes(t, pool, 1)
	p := placeholderPod(pool, "gpu", false)
	gpu := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	p.Spec.Containers[0].Resources.Limits = gpu
	p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = gpu["nvidia.com/gpu"]
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists})
	l.create(t, p)
	l.neverBound(t, p)
	plugins := func() int {
		var pods corev1.PodList
		require.NoError(t, l.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels(labels)))
		return len(pods.Items)
	}
	assert.Zero(t, plugins())
	l.untaint(t, pool)
	require.Eventually(t, func() bool { return plugins() == 1 }, limit, step, "the device plugin comes without the taint")
	return "the device plugin does not come, so the node has no GPU, so the placeholder stays Pending, so the taint stays"
}

// unused: a node was made for a Workspace that is gone.
func (l *lab) unused(t *testing.T, pool string, tainted bool) string {
	l.pool(t, pool, tainted)
	w := workspace(pool, "workspace")
	l.create(t, w)
	l.waitNodes(t, pool, 1)
	require.NoError(t, l.Delete(t.Context(), w, client.GracePeriodSeconds(0)))
	gone := func() bool { return len(l.nodes(t, pool)) == 0 }
	if tainted {
		require.Never(t, gone, 2*watched, step)
		return fmt.Sprintf("Karpenter keeps the node (seen for %s): it never counts as initialized", 2*watched)
	}
	require.Eventually(t, gone, limit, step)
	return "Karpenter removes the empty node"
}

// relaxed: Karpenter takes preferences for requirements at first, and must give this one up.
func (l *lab) relaxed(t *testing.T) string {
	const pool = "relaxed"
	l.pool(t, pool, false)
	w := workspace(pool, "workspace")
	w.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{warmLabel: "true", "app": "nobody"}},
			TopologyKey:   corev1.LabelHostname,
		}}},
	}}
	l.create(t, w)
	l.bound(t, w)
	return "Karpenter gives the preference up and makes a node"
}

// book keeps what was seen.
type book struct {
	mu    sync.Mutex
	lines [][2]string
}

func (b *book) note(experiment, seen string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, [2]string{experiment, seen})
}

func (b *book) table() string {
	slices.SortFunc(b.lines, func(x, y [2]string) int { return strings.Compare(x[0], y[0]) })
	var out strings.Builder
	out.WriteString("| Experiment | Seen |\n|---|---|\n")
	for _, line := range b.lines {
		fmt.Fprintf(&out, "| %s | %s |\n", line[0], line[1])
	}
	return out.String()
}

// write puts the table between its markers.
func (b *book) write(t *testing.T) {
	t.Helper()
	const begin, end = "<!-- begin start-up taint -->\n", "<!-- end start-up taint -->"
	path := filepath.Join("..", "..", "..", "docs", "warm-first.md")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(data), begin)
	require.True(t, found, "%s has no line %q", path, begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no line %q", path, end)
	require.NoError(t, os.WriteFile(path, []byte(before+begin+b.table()+end+after), 0o600))
}
