package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// A dry run gives the answer of a real request, word for word, and leaves nothing: no object, no count, no Event.
func TestDryRun(t *testing.T) {
	u := newUser(t)
	namespace := u.namespace(t)
	good, bad := placeholder(t, "gpu-a", gpu), placeholder(t, "gpu-a", gpu)
	bad.Name = "bad"
	bad.Spec.Template.Spec.Affinity = nil
	bad.Spec.Template.Spec.InitContainers[0].Image = "example.com/nb:latest"
	pod := workspacePod("gpu-a", gpu)
	pod.Spec.NodeSelector = map[string]string{"kubernetes.io/arch": "amd64"}
	before := findings(t)
	neverAsked(t, func() {
		_, err := u.AppsV1().Deployments(namespace).Create(t.Context(), good, dryRun)
		require.NoError(t, err)
		_, err = u.AppsV1().Deployments(namespace).Create(t.Context(), bad, dryRun)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		_, err = u.CoreV1().Pods(namespace).Create(t.Context(), pod, dryRun)
		require.NoError(t, err)
	})
	assert.Equal(t, before, findings(t))
	u.warnings(t)

	deployments, err := u.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, deployments.Items)
	pods, err := u.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, pods.Items)
	events, err := u.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, events.Items)

	dryDeployment, err := u.AppsV1().Deployments(namespace).Create(t.Context(), good, dryRun)
	require.NoError(t, err)
	sameObject(t, dryDeployment, u.create(t, namespace, good).got)
	_, dryErr := u.AppsV1().Deployments(namespace).Create(t.Context(), bad, dryRun)
	dryWarnings := u.warnings(t)
	o := u.create(t, namespace, bad)
	assert.Equal(t, o.err, dryErr)
	assert.Equal(t, o.warnings, dryWarnings)
	dryPod, err := u.CoreV1().Pods(namespace).Create(t.Context(), pod, dryRun)
	require.NoError(t, err)
	sameObject(t, dryPod, u.create(t, namespace, pod).got)
	assert.Greater(t, findings(t), before, "real requests count")
}

func findings(t *testing.T) float64 {
	t.Helper()
	return metric(t, "warmpool_findings_total")
}

// As kubectl diff and kubectl apply --dry-run=server --server-side ask.
func TestServerSideApply(t *testing.T) {
	u := newUser(t)
	namespace := u.namespace(t)
	d := placeholder(t, "gpu-a", gpu)
	d.APIVersion, d.Kind = "apps/v1", "Deployment"
	content, err := yaml.Marshal(d)
	require.NoError(t, err)
	apply := func(dry ...string) error {
		_, err := u.AppsV1().Deployments(namespace).Patch(t.Context(), d.Name, types.ApplyPatchType, content,
			metav1.PatchOptions{FieldManager: "test", DryRun: dry})
		return err
	}
	neverAsked(t, func() { require.NoError(t, apply(metav1.DryRunAll)) })
	require.NoError(t, apply())
	stored, err := u.AppsV1().Deployments(namespace).Get(t.Context(), d.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, apply(metav1.DryRunAll))
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{}
	content, err = yaml.Marshal(d)
	require.NoError(t, err)
	require.True(t, apierrors.IsInvalid(apply(metav1.DryRunAll)))
	again, err := u.AppsV1().Deployments(namespace).Get(t.Context(), d.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, stored, again)
}
