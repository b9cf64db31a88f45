package live

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"warmpool.sh/webhook/cluster"
)

var full = metav1.ObjectMeta{
	Name: "a", Namespace: "x", ResourceVersion: "7", UID: "u", Generation: 3,
	Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"},
	ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
}

func candidate(d *appsv1.Deployment) bool { return d.Labels["warmpool.sh/pool"] != "" }

// transformed applies a transform twice: informers may hand in what is transformed already.
func transformed[T any](t *testing.T, transform toolscache.TransformFunc, obj T) T {
	t.Helper()
	for range 2 {
		got, err := transform(any(obj))
		require.NoError(t, err)
		typed, ok := got.(T)
		require.True(t, ok, "got %T", got)
		obj = typed
	}
	return obj
}

func TestNodeKeepsWhatRulesRead(t *testing.T) {
	deleted := metav1.Now()
	meta := full
	meta.DeletionTimestamp = &deleted
	taints := []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	allocatable := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	since := metav1.NewTime(time.Unix(1, 0))
	got := transformed(t, keep(cluster.Nodes, nil), &corev1.Node{
		ObjectMeta: meta,
		Spec:       corev1.NodeSpec{Taints: taints, Unschedulable: true, ProviderID: "p", PodCIDR: "c"},
		Status: corev1.NodeStatus{
			Allocatable: allocatable, Capacity: allocatable, Images: []corev1.ContainerImage{{SizeBytes: 1}},
			NodeInfo: corev1.NodeSystemInfo{KernelVersion: "k"},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "r", Message: "m", LastTransitionTime: since, LastHeartbeatTime: metav1.Now()},
			},
		},
	})
	assert.Equal(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7", Labels: full.Labels, DeletionTimestamp: &deleted},
		Spec:       corev1.NodeSpec{Taints: taints, Unschedulable: true},
		Status: corev1.NodeStatus{Allocatable: allocatable, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "r", LastTransitionTime: since},
		}},
	}, got)
}

func TestNamespaceKeepsLabels(t *testing.T) {
	got := transformed(t, keep(cluster.Namespaces, nil), &corev1.Namespace{ObjectMeta: full, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}})
	assert.Equal(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7", Labels: full.Labels}}, got)
}

func TestDeploymentsThatAreNoPlaceholdersKeepTheirNameOnly(t *testing.T) {
	spec := appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}
	got := transformed(t, keep(cluster.Deployments, candidate), &appsv1.Deployment{ObjectMeta: full, Spec: spec})
	assert.Equal(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "x", ResourceVersion: "7"}}, got)
	left, err := cluster.Deployments.Fact(got)
	require.NoError(t, err)
	assert.Nil(t, left, "it is not in the Snapshot")

	meta := full
	meta.Labels = map[string]string{"warmpool.sh/pool": "gpu"}
	status := appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, ReadyReplicas: 1, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable}}}
	got = transformed(t, keep(cluster.Deployments, candidate), &appsv1.Deployment{ObjectMeta: meta, Spec: spec, Status: status})
	want := &appsv1.Deployment{ObjectMeta: meta, Spec: spec, Status: appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 1}}
	want.ManagedFields = nil
	assert.Equal(t, want, got)
	left, err = cluster.Deployments.Fact(got)
	require.NoError(t, err)
	assert.Same(t, got, left)
}

func TestOtherObjectsLoseManagedFields(t *testing.T) {
	got := transformed(t, keep(cluster.PriorityClasses, nil), &schedulingv1.PriorityClass{ObjectMeta: full, Value: 7})
	want := &schedulingv1.PriorityClass{ObjectMeta: full, Value: 7}
	want.ManagedFields = nil
	assert.Equal(t, want, got)
}

func TestDaemonSetKeepsWhatSizingNeeds(t *testing.T) {
	deleted, runtimeClass, always := metav1.Now(), "gvisor", corev1.ContainerRestartPolicyAlways
	some := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	needs := corev1.ResourceRequirements{Requests: some, Limits: some}
	affinity := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpExists}}}},
	}}
	want := corev1.PodSpec{
		NodeName: "n1", NodeSelector: map[string]string{"a": "b"}, HostNetwork: true,
		Affinity:         &corev1.Affinity{NodeAffinity: affinity},
		Tolerations:      []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		RuntimeClassName: &runtimeClass, Overhead: some, Resources: &needs,
		InitContainers: []corev1.Container{{Name: "sidecar", Resources: needs, RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "agent", Resources: needs}, {Name: "other"}},
	}
	pod := *want.DeepCopy()
	pod.Affinity.PodAffinity = &corev1.PodAffinity{}
	pod.Volumes = []corev1.Volume{{Name: "v"}}
	pod.ServiceAccountName, pod.PriorityClassName, pod.HostPID = "s", "system-node-critical", true
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Image, containers[i].Args = "i", []string{"--secret"}
			containers[i].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "t"}}
			containers[i].VolumeMounts = []corev1.VolumeMount{{Name: "v"}}
			containers[i].LivenessProbe = &corev1.Probe{}
		}
	}
	meta, templateMeta := full, metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}, Annotations: map[string]string{"a": "b"}}
	meta.DeletionTimestamp = &deleted
	got := transformed(t, keep(cluster.DaemonSets, nil), &appsv1.DaemonSet{
		ObjectMeta: meta,
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{ObjectMeta: templateMeta, Spec: pod}},
		Status:     appsv1.DaemonSetStatus{NumberReady: 7},
	})
	assert.Equal(t, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "x", ResourceVersion: "7", DeletionTimestamp: &deleted},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: templateMeta.Labels}, Spec: want,
		}},
	}, got)

	got = transformed(t, keep(cluster.DaemonSets, nil), &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{}}}}})
	assert.Equal(t, &appsv1.DaemonSet{}, got)
}

func TestNodeClaimKeepsWhatIsRead(t *testing.T) {
	claim := func(content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"] = "karpenter.sh/v1", "NodeClaim"
		return &unstructured.Unstructured{Object: content}
	}
	got := transformed(t, keepCustom, claim(map[string]any{
		"metadata": map[string]any{
			"name": "c", "resourceVersion": "7", "uid": "u", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"},
			"deletionTimestamp": "2026-01-01T00:00:00Z", "managedFields": []any{map[string]any{"manager": "karpenter"}},
		},
		"spec":   map[string]any{"taints": []any{}, "requirements": []any{}, "resources": map[string]any{}, "expireAfter": "720h"},
		"status": map[string]any{"allocatable": map[string]any{"cpu": "4"}, "capacity": map[string]any{"cpu": "4"}, "conditions": []any{}},
	}))
	assert.Equal(t, claim(map[string]any{
		"metadata": map[string]any{"name": "c", "resourceVersion": "7", "labels": map[string]any{"a": "b"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
		"spec":     map[string]any{"taints": []any{}, "requirements": []any{}},
		"status":   map[string]any{"allocatable": map[string]any{"cpu": "4"}},
	}), got)

	malformed := claim(map[string]any{"metadata": map[string]any{"name": "c"}, "spec": "x", "status": nil})
	got = transformed(t, keepCustom, malformed)
	assert.Equal(t, "x", got.Object["spec"], "what is malformed is reported, not dropped")
}

func TestCustomObjectsLoseStatusToo(t *testing.T) {
	for _, kind := range []string{"karpenter.sh/v1 NodePool", "workspace.jupyter.org/v1 WorkspaceTemplate"} {
		object := func() *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{"a": "b"}}}
			u.SetManagedFields(full.ManagedFields)
			apiVersion, name, _ := strings.Cut(kind, " ")
			u.SetAPIVersion(apiVersion)
			u.SetKind(name)
			return u
		}
		got := transformed(t, keepCustom, object())
		assert.NotContains(t, got.Object, "status", kind)
		assert.Contains(t, got.Object, "spec")
		assert.Empty(t, got.GetManagedFields())
	}
}

func TestTransformsLetTombstonesPass(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "x/a", Obj: &corev1.Pod{}}
	for _, transform := range []toolscache.TransformFunc{keepCustom, keep(cluster.Nodes, nil), keep(cluster.Deployments, candidate)} {
		got, err := transform(tombstone)
		require.NoError(t, err)
		assert.Equal(t, tombstone, got)
		_, err = transform((runtime.Object)(nil))
		require.NoError(t, err)
	}
}

// A pod keeps what proves that its images are on the node; pause containers prove nothing.
func TestPodKeepsWhatHasImages(t *testing.T) {
	pod := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: full,
			Spec: corev1.PodSpec{
				NodeName:       "n",
				InitContainers: []corev1.Container{{Name: "i", Image: "i:1", Command: []string{"true"}, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
				Containers:     []corev1.Container{{Name: "p", Image: "r.example/pause:3.10"}, {Name: "c", Image: "c:1", Env: []corev1.EnvVar{{Name: "SECRET", Value: "s"}}}},
				Volumes: []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "v:1"}}},
					{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
				},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}, PodIP: "10.0.0.1"},
		}
	}
	got := transformed(t, keep(cluster.PlaceholderPods, nil), pod())
	assert.Equal(t, corev1.PodSpec{
		NodeName:       "n",
		InitContainers: []corev1.Container{{Name: "i", Image: "i:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
		Containers:     []corev1.Container{{Name: "c", Image: "c:1"}},
		Volumes:        pod().Spec.Volumes[:1],
	}, got.Spec)
	assert.Equal(t, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}}, got.Status)

	paused := pod()
	paused.Spec.Containers = paused.Spec.Containers[:1]
	assert.Empty(t, transformed(t, keep(cluster.PlaceholderPods, nil), paused).Status.ContainerStatuses, "a pause container's status makes no new Snapshot")
}
