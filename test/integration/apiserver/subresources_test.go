package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubectl scale, CPA and the Deployment controller work through subresources: no rule stands in their way, not even of a
// placeholder with old faults.
func TestPlaceholderSubresources(t *testing.T) {
	u := newUser(t)
	faulty := old(t, u)
	deployments := u.AppsV1().Deployments(faulty.Namespace)
	u.warnings(t)
	neverAsked(t, func() {
		for _, replicas := range []int32{7, 0, 2} {
			scale, err := deployments.GetScale(t.Context(), faulty.Name, metav1.GetOptions{})
			require.NoError(t, err)
			scale.Spec.Replicas = replicas
			scale, err = deployments.UpdateScale(t.Context(), faulty.Name, scale, metav1.UpdateOptions{})
			require.NoError(t, err)
			assert.Equal(t, replicas, scale.Spec.Replicas)
		}
		d, err := deployments.Get(t.Context(), faulty.Name, metav1.GetOptions{})
		require.NoError(t, err)
		d.Status.ObservedGeneration = d.Generation
		_, err = deployments.UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
		require.NoError(t, err)
	})
	assert.Empty(t, u.warnings(t))
	got, err := deployments.Get(t.Context(), faulty.Name, metav1.GetOptions{})
	require.NoError(t, err)
	two := int32(2)
	faulty.Spec.Replicas, faulty.Generation, faulty.Status = &two, got.Generation, got.Status
	sameObject(t, faulty, got)
}

// Of pods, only CREATE is sent: later changes of a Workspace pod are not warmpool's.
func TestPodSubresources(t *testing.T) {
	u := newUser(t)
	pod := workspacePod("cpu-a")
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("2Gi")},
	}
	o := u.create(t, u.namespace(t), pod)
	require.NoError(t, o.err)
	pod, ok := o.got.(*corev1.Pod)
	require.True(t, ok)
	pods := u.CoreV1().Pods(pod.Namespace)
	neverAsked(t, func() {
		var err error
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox:1"}}}
		pod, err = pods.UpdateEphemeralContainers(t.Context(), pod.Name, pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Len(t, pod.Spec.EphemeralContainers, 1)

		require.NoError(t, pods.Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "hyperpod-i-00000000000000001"},
		}, metav1.CreateOptions{}))
		pod, err = pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		require.NoError(t, err)
		pod.Status.Phase = corev1.PodRunning
		pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)

		pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
		pod, err = pods.UpdateResize(t.Context(), pod.Name, pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "2", pod.Spec.Containers[0].Resources.Requests.Cpu().String())

		pod.Labels["team"] = "a"
		pod, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}))
	})
}

// A placeholder that is scaled by hand through the main resource is judged, and passes.
func TestScaleThroughTheMainResource(t *testing.T) {
	u := newUser(t)
	o := u.create(t, u.namespace(t), complete(t))
	require.NoError(t, o.err)
	d, ok := o.got.(*appsv1.Deployment)
	require.True(t, ok)
	for _, replicas := range []int32{9, 0, 3} {
		d.Spec.Replicas = &replicas
		got, err := u.AppsV1().Deployments(d.Namespace).Update(t.Context(), d, metav1.UpdateOptions{})
		require.NoError(t, err)
		d.Generation = got.Generation
		sameObject(t, d, got)
		d = got
	}
	assert.Empty(t, u.warnings(t))
}
