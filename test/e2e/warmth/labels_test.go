package warmth_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/controller/warmlabels"
	"warmpool.sh/webhook/prepull"
)

// Labels come and go with what the kubelet says, with one write for each change and none besides.
func TestLabelsFollowTheStatus(t *testing.T) {
	c := shared
	pod := c.scale(t, 1)[0]
	var before corev1.Pod
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &before))
	writes := 0
	var have map[string]string
	for _, s := range []struct {
		status corev1.ContainerStatus
		want   map[string]string
		state  string
	}{
		{pulling, labels(""), "pulling"},
		{waits("ErrImagePull"), labels(""), "pulling"},
		{waits("ImagePullBackOff"), labels("failed"), "failed"},
		{waits("ErrImagePull"), labels("failed"), "failed"},
		{waits("ImagePullBackOff"), labels("failed"), "failed"},
		{pulled, labels("true", first), "warm"},
		{again(pulling, pulled), labels(""), "pulling"}, // the node was restarted, say
		{again(pulled, pulled), labels("true", first), "warm"},
		{again(waits("ImagePullBackOff"), pulled), labels("failed"), "failed"},
		{ended(128, "StartError"), labels("true", first), "warm"},
		{again(waits("CrashLoopBackOff"), ended(128, "StartError")), labels("true", first), "warm"},
		{again(waits("CrashLoopBackOff"), ended(1, "Error")), labels("failed"), "failed"},
		{pulled, labels("true", first), "warm"},
	} {
		c.says(t, pod, s.status)
		counted(t, c.warmpool, map[string]int{s.state: 1}) // it has seen it
		c.has(t, pod, s.want)
		if len(s.want) != len(have) || s.want[prepull.WarmLabel] != have[prepull.WarmLabel] {
			writes++
		}
		have = s.want
		c.wrote(t, pod, writes)
	}
	require.Equal(t, 8, writes)

	var after corev1.Pod
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &after))
	assert.Equal(t, before.Spec, after.Spec)
	assert.Equal(t, before.UID, after.UID)
	assert.Equal(t, before.OwnerReferences, after.OwnerReferences, "its ReplicaSet still selects it")
	assert.True(t, slices.ContainsFunc(after.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == warmlabels.FieldManager }))

	// What others do to the labels is put right; labels of theirs stay.
	for _, patch := range []string{
		`{"metadata": {"labels": {"warmpool.sh/warm": "failed", "team": "a"}}}`,
		`{"metadata": {"labels": {"warmpool.sh/warm": null, "image.warmpool.sh/0123456789abcdef": "true"}}}`,
		`{"metadata": {"labels": {"` + prepull.ImageLabel(first) + `": "no"}}}`,
	} {
		require.NoError(t, c.admin.Patch(t.Context(), pod.DeepCopy(), merge(patch)))
		writes++
		c.wrote(t, pod, writes)
		c.has(t, pod, have)
	}
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &after))
	assert.Equal(t, "a", after.Labels["team"])

	// A pod that is deleted comes again, without any.
	require.NoError(t, c.admin.Delete(t.Context(), pod))
	next := c.settled(t, 1)[0]
	require.NotEqual(t, pod.UID, next.UID)
	c.says(t, next, pulling)
	counted(t, c.warmpool, map[string]int{"pulling": 1})
	c.wrote(t, next, 0)
	assert.Empty(t, c.labelsOf(t, next))
}

// A pod of several images is warm with the last of them.
func TestSeveralImages(t *testing.T) {
	c := shared
	d := c.placeholder(t)
	d.Name, d.Annotations, d.Spec.Replicas = "several", map[string]string{prepull.OptOut: "false"}, new(int32(1))
	d.Spec.Selector.MatchLabels["type"], d.Spec.Template.Labels["type"] = d.Name, d.Name
	another := *d.Spec.Template.Spec.InitContainers[0].DeepCopy()
	another.Name, another.Image = prepull.ContainerName(1), second
	d.Spec.Template.Spec.InitContainers = append(d.Spec.Template.Spec.InitContainers, another)
	require.NoError(t, c.admin.Create(t.Context(), d))
	t.Cleanup(func() {
		_, _, err := c.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "--cascade=foreground", "deployment", d.Name, "-n", placeholders)
		assert.NoError(t, err)
	})
	pod := c.settled(t, 1)[0]
	c.says(t, pod, pulled, pulling)
	c.has(t, pod, labels("", first))
	c.says(t, pod, pulled, waits("InvalidImageName"))
	c.has(t, pod, labels("failed", first))
	c.says(t, pod, pulled, pulled)
	c.has(t, pod, labels("true", first, second))
	c.says(t, pod, again(pulling, pulled), pulled)
	c.has(t, pod, labels("", second))
	c.wrote(t, pod, 4)
}

// placeholder is the shipped one of the pool cpu.
func (c *cluster) placeholder(t *testing.T) *appsv1.Deployment {
	t.Helper()
	i := slices.IndexFunc(c.shipped, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && o.GetName() == "spaces-placeholder-cpu"
	})
	require.GreaterOrEqual(t, i, 0)
	var d appsv1.Deployment
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(c.shipped[i].Object, &d))
	return &d
}

// The time from when a status is written to when a watch shows the labels for it is told, not judged.
func TestLabelsComeSoon(t *testing.T) {
	c := shared
	const rounds = 25
	pods := c.scale(t, 4)
	results := make(chan []time.Duration)
	for _, pod := range pods {
		go func() { results <- c.times(t, pod, rounds) }()
	}
	var took []time.Duration
	for range pods {
		took = append(took, <-results...)
	}
	require.Len(t, took, rounds*len(pods))
	slices.Sort(took)
	t.Logf("labels after a change of status, %d times on %d pods at once: median %v, p99 %v, longest %v",
		len(took), len(pods), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}

func (c *cluster) times(t *testing.T, pod *corev1.Pod, rounds int) (took []time.Duration) {
	w, err := c.admin.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(placeholders),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", pod.Name)})
	if !assert.NoError(t, err) {
		return nil
	}
	defer w.Stop()
	for i := range rounds {
		status, want := pulled, "true"
		if i%2 == 1 {
			status, want = again(pulling, pulled), ""
		}
		if !assert.NoError(t, c.say(t.Context(), pod, []corev1.ContainerStatus{status})) {
			return took
		}
		written := time.Now()
		if !assert.True(t, shows(w, want), "%s: round %d", pod.Name, i) {
			return took
		}
		took = append(took, time.Since(written))
	}
	return took
}

// shows waits until a watched pod has a value of prepull.WarmLabel.
func shows(w watch.Interface, want string) bool {
	for deadline := time.After(limit); ; {
		select {
		case event := <-w.ResultChan():
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Labels[prepull.WarmLabel] == want {
				return true
			}
		case <-deadline:
			return false
		}
	}
}
