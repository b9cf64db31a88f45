package warmfirst_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
)

// scenario is a pool and the Workspaces that come to it.
type scenario struct {
	name, what string
	// warm are the nodes whose placeholder has pulled the first image, others those with the second, pulling those whose
	// placeholder still pulls, empty those without a placeholder.
	warm, others, pulling, empty int
	exclusive, gpu, zonal        bool
	// burst are the Workspaces that come at once; 0: one.
	burst int
}

var images = []string{"registry.example/nb:1", "registry.example/r:4"}

func (s *scenario) placeholders() int { return s.warm + s.others + s.pulling }

// open makes the pool's nodes and placeholders.
func (l *lab) open(t *testing.T, s *scenario) {
	t.Helper()
	l.nodes(t, s.name, s.placeholders()+s.empty)
	labels := map[string]string{"pool": s.name}
	spec := podSpec(s, map[bool]string{true: "12", false: "2"}[s.exclusive])
	spec.PriorityClassName, spec.TerminationGracePeriodSeconds = "placeholder", new(int64(0))
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}},
	}}}
	if s.zonal {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}}
	}
	l.create(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(s.placeholders())), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	})
}

func podSpec(s *scenario, cpu string) corev1.PodSpec {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	if s.gpu {
		list[gpu] = resource.MustParse("1")
	}
	return corev1.PodSpec{
		NodeSelector: map[string]string{poolLabel: s.name},
		Containers:   []corev1.Container{{Name: "main", Image: images[0], Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}},
	}
}

// budget is what the manifests ship for each placeholder Deployment.
func (l *lab) budget(t *testing.T, s *scenario) {
	t.Helper()
	none := intstr.FromInt32(0)
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.name},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"pool": s.name},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: prepull.WarmLabel, Operator: metav1.LabelSelectorOpDoesNotExist}},
		}},
	}
	l.create(t, pdb)
	l.wait(t, "the budget is in force", func() bool {
		require.NoError(t, l.Get(t.Context(), client.ObjectKeyFromObject(pdb), pdb))
		return pdb.Status.ObservedGeneration > 0
	})
}

// warm waits for all placeholders and labels them as warmpool does; those that still pull have started last. Which ones
// is another choice in each run. It returns the nodes that have each of the images.
func (l *lab) warm(t *testing.T, s *scenario, run int) map[string][]string {
	t.Helper()
	var pods []corev1.Pod
	l.wait(t, "the placeholders run", func() bool {
		pods = l.pods(t, namespace, client.MatchingLabels{"pool": s.name})
		return len(pods) == s.placeholders() && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
	})
	nodes, began := map[string][]string{}, time.Now()
	for i := range pods {
		at := (i*7 + run) % len(pods)
		if len(pods)%7 == 0 {
			at = (i + run) % len(pods)
		}
		labels, started := map[string]any{prepull.WarmLabel: nil, prepull.ImageLabel(images[0]): nil, prepull.ImageLabel(images[1]): nil}, began
		if at < s.warm+s.others {
			image := images[map[bool]int{true: 0, false: 1}[at < s.warm]]
			nodes[image] = append(nodes[image], pods[i].Spec.NodeName)
			labels[prepull.WarmLabel], labels[prepull.ImageLabel(image)] = prepull.WarmTrue, "true"
			started = began.Add(-time.Hour)
		}
		l.patch(t, &pods[i], map[string]any{"metadata": map[string]any{"labels": labels}}, false)
		l.patch(t, &pods[i], map[string]any{"status": map[string]any{"startTime": started.UTC().Format(time.RFC3339)}}, true)
	}
	return nodes
}

func (l *lab) patch(t *testing.T, pod *corev1.Pod, change map[string]any, status bool) {
	t.Helper()
	data, err := json.Marshal(change)
	require.NoError(t, err)
	patch := client.RawPatch(types.MergePatchType, data)
	if status {
		require.NoError(t, l.Status().Patch(t.Context(), pod, patch))
		return
	}
	require.NoError(t, l.Patch(t.Context(), pod, patch))
}

// workspace fits beside a placeholder of a Coexist pool, and in place of one of an Exclusive pool.
func workspace(s *scenario, run, i int, image string, prefer bool) *corev1.Pod {
	spec := podSpec(s, "6")
	spec.Containers[0].Image = image
	spec.TerminationGracePeriodSeconds = new(int64(0))
	if s.zonal { // as a volume would have it
		spec.NodeSelector[corev1.LabelTopologyZone] = zones[run%len(zones)]
	}
	if prefer {
		placement.Prefer(&spec, "/spec", placement.WarmFirst(namespace, image), &placement.Patch{})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("%s-%d-%d", s.name, run, i), Labels: map[string]string{"workspace": s.name}},
		Spec:       spec,
	}
}

// clear deletes the scenario's Workspaces.
func (l *lab) clear(t *testing.T, s *scenario) {
	t.Helper()
	labels := client.MatchingLabels{"workspace": s.name}
	require.NoError(t, l.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(team), labels, client.GracePeriodSeconds(0)))
	l.wait(t, "the Workspaces are gone", func() bool { return len(l.pods(t, team, labels)) == 0 })
}
