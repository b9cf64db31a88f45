package imagesync_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/webhook/controller/imagesync"
	"warmpool.sh/webhook/prepull"
)

const (
	first  = "registry.example/notebook:1"
	second = "registry.example/notebook:2"
	third  = "registry.example/notebook:3"
)

// complete waits until a rollout has ended.
func (c *cluster) complete(t *testing.T, name string) {
	t.Helper()
	await.NoProblem(t, limit, "the rollout of "+name+" is complete", func() string {
		d := c.deployment(t, name)
		if s := d.Status; s.ObservedGeneration == d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.ReadyReplicas == *d.Spec.Replicas && s.Replicas == *d.Spec.Replicas {
			return ""
		}
		return fmt.Sprintf("generation %d, status %+v", d.Generation, d.Status)
	})
}

// Three placeholders on the three nodes that there are: a change of the template rolls them one after the other, in one
// rollout, without one more pod.
func TestTemplateChangeIsOneRolloutOnTheSameNodes(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "rollout", first)
	c.apply(t, replaced(t, manifest("rollout", first), "replicas: 1", "replicas: 3"))
	before := c.synced(t, "rollout", first)
	assert.Equal(t, appsv1.DeploymentStrategy{Type: "RollingUpdate", RollingUpdate: rolling(0, 1)}, before.Spec.Strategy)
	c.complete(t, "rollout")
	require.Equal(t, 1, c.rollouts(t, "rollout"))
	c.wrote(t, "rollout", 1)
	peak := c.peak(t, "rollout")

	c.setImage(t, "rollout", second)
	after := c.synced(t, "rollout", second)
	c.complete(t, "rollout")
	assert.EqualValues(t, 3, peak(), "pods at one time")
	assert.Equal(t, 2, c.rollouts(t, "rollout"))
	c.wrote(t, "rollout", 2)
	var pods corev1.PodList
	require.NoError(t, c.admin.List(t.Context(), &pods, client.MatchingLabels{"placeholder": "rollout"}))
	for _, pod := range pods.Items {
		assert.Equal(t, second, pod.Spec.InitContainers[0].Image)
	}

	want := *before.Spec.Template.DeepCopy()
	want.Spec.InitContainers[0].Image = second
	assert.Equal(t, want, after.Spec.Template, "nothing but the image, no annotation")
	assert.Equal(t, templates+"/rollout", after.Annotations[prepull.SyncedTemplate])
	at, err := time.Parse(time.RFC3339, after.Annotations[prepull.SyncedAt])
	require.NoError(t, err)
	assert.False(t, at.Before(after.CreationTimestamp.Time))
	ownsTheImagesAlone(t, after)

	note := "Deployment overprovisioning/rollout of pool rollout pulls " + second + " now (before: " + first + ")"
	for kind, name := range map[string]string{"Deployment": "rollout", "WorkspaceTemplate": "rollout"} {
		event := c.told(t, kind, name, "ImageSynced")
		assert.Equal(t, note, event.Note)
		assert.Equal(t, corev1.EventTypeNormal, event.Type)
		assert.Equal(t, "Patch", event.Action)
		assert.Nil(t, event.Series)
		assert.Len(t, c.events(t, kind, name, ""), 1)
	}
	assert.EqualValues(t, 1, c.metric(t, "warmpool_image_sync_total", `pool="rollout"`))
	assert.EqualValues(t, 1, c.metric(t, "warmpool_image_sync_total", `pool="rollout",result="synced"`))
	await.NoProblem(t, limit, "the pool is in sync", func() string {
		if c.metric(t, "warmpool_image_in_sync", `pool="rollout"`) == 1 {
			return ""
		}
		return "warmpool_image_in_sync is not 1"
	})
	assert.Positive(t, c.metric(t, "warmpool_image_sync_duration_seconds_count", ""))
	assert.Len(t, c.logged(t, "image synced", `name="rollout"`), 1)
}

// peak follows the placeholder's ReplicaSets until it is asked for the most pods that they were to have at one time. The pods
// themselves tell less: a new one may come a moment before the old one that makes room for it has gone.
func (c *cluster) peak(t *testing.T, name string) func() int32 {
	t.Helper()
	var list appsv1.ReplicaSetList
	require.NoError(t, c.admin.List(t.Context(), &list, client.InNamespace(placeholders), client.MatchingLabels{"placeholder": name}))
	watched, err := c.admin.Watch(t.Context(), &appsv1.ReplicaSetList{}, client.InNamespace(placeholders), client.MatchingLabels{"placeholder": name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	require.NoError(t, err)
	wanted := map[string]int32{}
	for i := range list.Items {
		wanted[list.Items[i].Name] = *list.Items[i].Spec.Replicas
	}
	sum := func() (all int32) {
		for _, replicas := range wanted {
			all += replicas
		}
		return all
	}
	most, done := sum(), make(chan struct{})
	go func() {
		defer close(done)
		for event := range watched.ResultChan() {
			if set, ok := event.Object.(*appsv1.ReplicaSet); ok {
				wanted[set.Name] = *set.Spec.Replicas
			}
			most = max(most, sum())
		}
	}()
	return func() int32 {
		watched.Stop()
		<-done
		return most
	}
}

// ownsTheImagesAlone checks that image sync owns its annotations and the images of a placeholder with one, and no more.
func ownsTheImagesAlone(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	owned := &fieldpath.Set{}
	for _, entry := range d.ManagedFields {
		if entry.Manager == imagesync.FieldManager {
			assert.Equal(t, metav1.ManagedFieldsOperationApply, entry.Operation)
			var set fieldpath.Set
			require.NoError(t, set.FromJSON(entry.FieldsV1.GetRawReader()))
			owned = owned.Union(&set)
		}
	}
	var got []string
	owned.Leaves().Iterate(func(p fieldpath.Path) { got = append(got, p.String()) })
	container := `.spec.template.spec.initContainers[name="pull-workspace-image"]`
	assert.ElementsMatch(t, []string{
		".metadata.annotations.warmpool.sh/synced-at", ".metadata.annotations.warmpool.sh/synced-image", ".metadata.annotations.warmpool.sh/synced-template",
		container + ".image", container + ".name",
	}, got)
}
