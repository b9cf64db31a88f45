package warmth_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
)

const team = "default" // the namespace of Workspaces

// Each start of a Workspace is counted by how it came to its node, and told on the pod where it was cold.
func TestStarts(t *testing.T) {
	c := shared
	pods := c.scale(t, 3)
	for i, status := range []corev1.ContainerStatus{pulled, pulled, pulling} {
		c.says(t, pods[i], status)
	}
	c.has(t, pods[0], labels("true", first))
	c.has(t, pods[1], labels("true", first))
	warm, pulls := pods[0].Spec.NodeName, pods[2].Spec.NodeName
	empty := c.emptyNode(t, pods)
	for _, s := range []struct{ name, node, cpu, path, cause, note string }{
		{"beside", warm, "1", "coexist", "", ""},
		{"too-early", pulls, "1", "cold", "image-not-pulled", "cold: node " + pulls + " has a placeholder, which has not pulled " + first},
		{"elsewhere", empty, "1", "cold", "other-node", "and the Workspace took node " + empty + ", which has no placeholder"},
		{"in-the-place", warm, "3500m", "preempt", "", ""},
	} {
		t.Run(s.name, func(t *testing.T) {
			sample := fmt.Sprintf("warmpool_workspace_starts_total{cause=%q,path=%q,pool=\"cpu\"} ", s.cause, s.path)
			count := fmt.Sprintf("warmpool_workspace_start_seconds_count{path=%q,pool=\"cpu\"} ", s.path)
			counted, timed := c.sample(t, sample), c.sample(t, count)
			pod := c.workspace(t, s.name, s.node, s.cpu)
			await.NoProblem(t, limit, "the start is counted", func() string {
				if problem := wanted(counted+1, c.sample(t, sample)); problem != "" {
					return problem + ", of these:\n" + c.starts(t)
				}
				return ""
			})
			assert.Equal(t, timed+1, c.sample(t, count))
			if s.cause == "" {
				assert.Empty(t, c.coldStarts(t, pod))
				return
			}
			await.NoProblem(t, limit, "the start is told", func() string { return wanted(1, len(c.coldStarts(t, pod))) })
			assert.Contains(t, c.coldStarts(t, pod)[0], s.note)
		})
	}
	assert.False(t, c.exists(t, pods[0]), "it has made room")
}

// emptyNode is one without a placeholder.
func (c *cluster) emptyNode(t *testing.T, pods []*corev1.Pod) string {
	t.Helper()
	for i := range nodes {
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == nodeName(i) }) {
			return nodeName(i)
		}
	}
	require.Fail(t, "each node has a placeholder")
	return ""
}

// workspace starts one on a node, which is not there any more when the test ends.
func (c *cluster) workspace(t *testing.T, name, node, cpu string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, Labels: map[string]string{"workspace.jupyter.org/workspace-name": name}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers: []corev1.Container{{Name: "workspace", Image: first, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			}}},
		},
	}
	require.NoError(t, c.admin.Create(t.Context(), pod))
	t.Cleanup(func() {
		assert.NoError(t, c.admin.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0)))
	})
	await.NoProblem(t, limit, "it runs", func() string {
		require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		if pod.Spec.NodeName == "" {
			return fmt.Sprint(pod.Status.Conditions)
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "workspace", Image: first, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
		if err := c.admin.Status().Update(t.Context(), pod); err != nil {
			return err.Error()
		}
		return ""
	})
	return pod
}

// sample is the value of the leader's sample with this text before its value; 0 where there is none.
func (c *cluster) sample(t *testing.T, begin string) (count int) {
	t.Helper()
	for line := range strings.Lines(scrape(t, c.warmpool)) {
		if value, ok := strings.CutPrefix(line, begin); ok {
			_, err := fmt.Sscan(value, &count)
			require.NoError(t, err)
		}
	}
	return count
}

// starts are all of the leader's samples that count starts.
func (c *cluster) starts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(scrape(t, c.warmpool)) {
		if strings.HasPrefix(line, "warmpool_workspace_starts_total") {
			all.WriteString(line)
		}
	}
	return all.String()
}

// coldStarts are the notes of the Events about a pod that has started cold.
func (c *cluster) coldStarts(t *testing.T, pod *corev1.Pod) (notes []string) {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, c.admin.List(t.Context(), &list, client.InNamespace(pod.Namespace)))
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.UID == pod.UID && e.Reason == "ColdStart" {
			assert.Equal(t, corev1.EventTypeNormal, e.Type)
			notes = append(notes, e.Note)
		}
	}
	return notes
}
