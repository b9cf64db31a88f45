package imagesync_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
)

func rolling(surge, unavailable int32) *appsv1.RollingUpdateDeployment {
	return &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable))}
}

// What says nothing about the images writes nothing: neither other edits of the template, nor the comings and goings of a
// cluster.
func TestNothingIsWrittenWithoutAReason(t *testing.T) {
	t.Parallel()
	c := shared
	before := c.start(t, "quiet", first)
	c.wrote(t, "quiet", 1)
	for _, patch := range []string{
		`{"metadata": {"labels": {"team": "a"}}}`, `{"metadata": {"annotations": {"note": "b"}}}`, `{"spec": {"displayName": "c"}}`,
		`{"spec": {"allowedImages": ["registry.example/other:1"]}}`,
	} {
		c.patchTemplate(t, "quiet", patch)
	}
	require.NoError(t, c.admin.Status().Patch(t.Context(), template("quiet"), merge(`{"status": {"observed": 1}}`)))
	for i := range 10 {
		name := fmt.Sprintf("passing-%d", i)
		require.NoError(t, c.CreateNode(t.Context(), node("passing", name)))
		require.NoError(t, c.admin.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	c.passed(t, "quiet")
	after := c.deployment(t, "quiet")
	assert.Equal(t, before.Spec, after.Spec)
	c.wrote(t, "quiet", 1)
	assert.Equal(t, withoutRevision(before), withoutRevision(after))
	assert.Empty(t, c.events(t, "Deployment", "quiet", ""))
	assert.Empty(t, c.events(t, "WorkspaceTemplate", "quiet", ""))
}

// withoutRevision are a Deployment's annotations without those of the Deployment controller.
func withoutRevision(d *appsv1.Deployment) map[string]string {
	kept := map[string]string{}
	for key, value := range d.Annotations {
		if key != "deployment.kubernetes.io/revision" {
			kept[key] = value
		}
	}
	return kept
}

// Three edits in one go end at the last, with at most one rollout more than one.
func TestBurstOfEditsIsTwoRolloutsAtMost(t *testing.T) {
	t.Parallel()
	c := shared
	c.start(t, "burst", first)
	require.Equal(t, 1, c.rollouts(t, "burst"))
	c.wrote(t, "burst", 1)
	for i := range 3 {
		c.setImage(t, "burst", fmt.Sprintf("registry.example/notebook:burst-%d", i))
	}
	c.synced(t, "burst", "registry.example/notebook:burst-2")
	c.passed(t, "burst")
	assert.LessOrEqual(t, c.writes(t, "burst"), 3)
	assert.LessOrEqual(t, c.rollouts(t, "burst"), 3)
}

// A placeholder that is deleted and applied again with yesterday's image starts with today's.
func TestPlaceholderThatIsMadeAgainStartsWithTheImage(t *testing.T) {
	t.Parallel()
	c := shared
	old := c.start(t, "recreated", first)
	c.setImage(t, "recreated", second)
	c.synced(t, "recreated", second)
	require.NoError(t, c.admin.Delete(t.Context(), old, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	await.NoProblem(t, limit, "it is gone", func() string {
		if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(old), &appsv1.Deployment{}); err == nil {
			return "it is there"
		}
		return ""
	})
	c.apply(t, manifest("recreated", first))
	d := c.synced(t, "recreated", second)
	assert.Equal(t, 1, c.rollouts(t, "recreated"))
	assert.NotEqual(t, old.UID, d.UID)
}
