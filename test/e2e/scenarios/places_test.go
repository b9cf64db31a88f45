package scenarios_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/simulation"
)

// poolsOf are the NodePools that the node affinity of a pod requires.
func poolsOf(pod *corev1.Pod) (pools []string) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, r := range term.MatchExpressions {
			if r.Key == simulation.PoolLabel {
				pools = append(pools, r.Values...)
			}
		}
	}
	return pools
}

// A volume ties its Workspace to a zone. Where a placeholder is warm there it starts warm; else it starts cold, and
// warmpool says that the zone is why.
func (l *lab) zone(t *testing.T) {
	l.begin(t, "cpu", 2)
	for _, name := range l.warm(t, "cpu") {
		require.Equal(t, "us-east-1a", l.node(t, name).Labels[corev1.LabelTopologyZone])
	}
	here := func(name, zone string) simulation.Startup {
		l.volume(t, name, zone)
		s := l.one(t, simulation.Workspace{Name: name, Kind: "cpu", CPU: beside}, func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "home", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "home", MountPath: "/home"}}
		})
		assert.Equal(t, zone, l.node(t, s.Node).Labels[corev1.LabelTopologyZone])
		assert.False(t, s.Outside)
		return s
	}
	l.counted(t, "cpu", "coexist", "", 1, func() { here("zone-a", "us-east-1a") })
	var first simulation.Startup
	l.counted(t, "cpu", "cold", "zone", 1, func() { first = here("zone-b", "us-east-1b") })
	assert.True(t, first.Booted)
	assert.True(t, first.Pulled)
	await.NoProblem(t, limit, "the Event on the pod", func() string { return l.note(t, first.Pod, "cold: no warm node in zone us-east-1b") })

	l.want(t, "cpu", 3)
	assert.Contains(t, l.refilled(t, "cpu", 3), first.Node, "the third placeholder goes where there is room already")
	l.counted(t, "cpu", "coexist", "", 1, func() {
		second := here("zone-b-again", "us-east-1b")
		assert.Equal(t, simulation.Coexist, second.Path)
		assert.True(t, second.Warm(), "%+v", second)
		assert.Equal(t, first.Node, second.Node)
	})
	l.onlyPlaceholders(t, 0, "")
}

// volume makes one that can be attached in a zone, and waits until a claim of the same name has it.
func (l *lab) volume(t *testing.T, name, zone string) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		ClaimRef:               &corev1.ObjectReference{Namespace: simulation.Team, Name: name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}}, // no one mounts it
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: simulation.Team, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, VolumeName: name, StorageClassName: new(string),
		Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
	require.NoError(t, l.Admin.Create(t.Context(), volume))
	require.NoError(t, l.Admin.Create(t.Context(), claim))
	await.NoProblem(t, limit, "the claim is bound", func() string {
		require.NoError(t, l.Admin.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		if claim.Status.Phase != corev1.ClaimBound {
			return string(claim.Status.Phase)
		}
		return ""
	})
}

// A Workspace that names its own pool goes there, cold as it may be, and its pod stays as it is; warmpool warns.
func (l *lab) ownPool(t *testing.T) {
	l.begin(t, "cpu", 2)
	const finding = "warmpool_findings_total"
	conflict := []string{`rule="workspace-pool-conflict"`, `action="Warn"`, `pool="cpu"`}
	const starts = "warmpool_workspace_starts_total"
	before, cold := l.metric(t, finding, conflict...), l.metric(t, starts, `path="cold"`)
	selector := map[string]string{simulation.PoolLabel: "general"}
	s := l.one(t, simulation.Workspace{Name: "own-pool", Kind: "cpu", CPU: beside}, func(spec *corev1.PodSpec) { spec.NodeSelector = selector })
	assert.True(t, s.Outside)
	assert.Equal(t, "general", l.node(t, s.Node).Labels[simulation.PoolLabel])
	assert.Equal(t, simulation.Cold, s.Path)
	pod := l.podOf(t, s)
	assert.Equal(t, selector, pod.Spec.NodeSelector)
	assert.Nil(t, pod.Spec.Affinity)
	assert.Equal(t, before+1, l.metric(t, finding, conflict...))
	await.NoProblem(t, limit, "a cold start is counted", func() string {
		if now := l.metric(t, starts, `path="cold"`); now != cold+1 {
			return fmt.Sprintf("%d instead of %d", now, cold+1)
		}
		return ""
	})
	l.onlyPlaceholders(t, 0, "")
}

// What is no Workspace does not come to tainted nodes. An untainted pool is open to it, as to anybody: it takes room beside
// a placeholder, or its place. warmpool changes nothing of it.
func (l *lab) unmanaged(t *testing.T) {
	l.begin(t, "gpu", 2)
	l.begin(t, "cpu", 2)
	nodes := l.warm(t, "cpu")
	l.cordon(t, "cordon") // where else such pods could go
	t.Cleanup(func() { l.cordon(t, "uncordon") })
	picky := l.other(t, "wants-a-gpu-node", "1", map[string]string{corev1.LabelInstanceTypeStable: "ml.g5.8xlarge"})
	await.NoProblem(t, limit, "the scheduler refuses it", func() string {
		require.NoError(t, l.Admin.Get(t.Context(), client.ObjectKeyFromObject(picky), picky))
		require.Empty(t, picky.Spec.NodeName)
		for _, c := range picky.Status.Conditions {
			if c.Type == corev1.PodScheduled && strings.Contains(c.Message, "untolerated taint") {
				return ""
			}
		}
		return fmt.Sprint(picky.Status.Conditions)
	})
	for i, cpu := range []string{"3", "14"} {
		pod := l.other(t, "cores-"+cpu, cpu, nil)
		await.NoProblem(t, limit, "it runs", func() string {
			require.NoError(t, l.Admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Sprint(pod.Status.Conditions)
			}
			return ""
		})
		assert.Contains(t, nodes, pod.Spec.NodeName)
		assert.Nil(t, pod.Spec.Affinity)
		assert.Empty(t, pod.Spec.NodeSelector)
		l.onlyPlaceholders(t, i, preempted)
	}
}

// cordon opens or closes the nodes that are of no pool.
func (l *lab) cordon(t *testing.T, verb string) {
	t.Helper()
	_, _, err := l.Kubectl(context.WithoutCancel(t.Context()), "", verb, "-l", simulation.PoolLabel+"=general")
	require.NoError(t, err)
}

// other makes a pod that has nothing to do with Workspaces; it ends with the test.
func (l *lab) other(t *testing.T, name, cpu string, selector map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.PodSpec{NodeSelector: selector, Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/others:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	require.NoError(t, l.Admin.Create(t.Context(), pod))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.NoError(t, l.Admin.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	})
	return pod
}

// manyWithin gives the nodes this much time, and then the Workspaces.
func (l *lab) manyWithin(t *testing.T, within time.Duration) {
	t.Helper()
	began := time.Now()
	l.nodePool(t, "spaces-cpu", `{"limits": {"cpu": "3200"}}`)
	l.beginWithin(t, within, "cpu", 200)
	t.Logf("200 warm nodes after %s", time.Since(began).Round(time.Second))
	var names []string
	for i := range 500 {
		w := simulation.Workspace{Name: fmt.Sprintf("many-%d", i), Kind: "cpu", CPU: beside}
		names = append(names, w.Name)
		l.create(t, w, nil)
	}
	starts, err := l.WaitRunning(t.Context(), within, names...)
	require.NoError(t, err)
	l.figures(t, starts)
	t.Logf("all run after %s", time.Since(began).Round(time.Second))
	for _, s := range starts {
		assert.False(t, s.Outside, "%+v", s)
		assert.True(t, s.Warm(), "%+v", s)
		assert.Equal(t, simulation.Coexist, s.Path, "%+v", s)
	}
	l.onlyPlaceholders(t, 0, "")
	assert.Zero(t, l.metric(t, "warmpool_admissions_refused_total"))
	assert.Zero(t, l.metric(t, "warmpool_failed_open_total"))
	var events eventsv1.EventList
	require.NoError(t, l.Admin.List(t.Context(), &events, client.InNamespace(simulation.Team)))
	for i := range events.Items {
		assert.NotEqual(t, "FailedCreate", events.Items[i].Reason, events.Items[i].Note)
	}
}
