package warmth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/prepull"
)

// labels are those that warmpool sets: a value of prepull.WarmLabel, or empty for none, and images.
func labels(warm string, images ...string) map[string]string {
	found := map[string]string{}
	if warm != "" {
		found[prepull.WarmLabel] = warm
	}
	for _, image := range images {
		found[prepull.ImageLabel(image)] = "true"
	}
	return found
}

// has waits until a pod has exactly these labels of warmpool's.
func (c *cluster) has(t *testing.T, pod *corev1.Pod, want map[string]string) {
	t.Helper()
	await.NoProblem(t, limit, "the labels of "+pod.Name, func() string {
		if got := c.labelsOf(t, pod); !maps.Equal(got, want) {
			return fmt.Sprintf("%s has the labels %v; wanted: %v", pod.Name, got, want)
		}
		return ""
	})
}

func (c *cluster) labelsOf(t *testing.T, pod *corev1.Pod) map[string]string {
	t.Helper()
	var now corev1.Pod
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &now))
	maps.DeleteFunc(now.Labels, func(key, _ string) bool {
		return key != prepull.WarmLabel && !strings.HasPrefix(key, prepull.ImageLabelPrefix)
	})
	return now.Labels
}

// writes are the bodies of warmpool's requests that write, or try to write, a pod; all pods' when the name is empty. It
// never does anything else to pods than to patch their labels and their deletion cost.
func (c *cluster) writes(t *testing.T, name string) []string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(c.Dir, "audit.log"))
	require.NoError(t, err)
	var bodies []string
	for line := range bytes.Lines(log) {
		var event struct {
			Verb          string
			ObjectRef     struct{ Namespace, Name, Subresource string }
			RequestObject json.RawMessage
		}
		if json.Unmarshal(line, &event) != nil || name != "" && event.ObjectRef.Name != name {
			continue // the last line may not be complete
		}
		require.Equal(t, "patch", event.Verb)
		require.Equal(t, placeholders, event.ObjectRef.Namespace)
		require.Empty(t, event.ObjectRef.Subresource)
		var body struct {
			Metadata map[string]json.RawMessage `json:"metadata"`
		}
		decoder := json.NewDecoder(bytes.NewReader(event.RequestObject))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&body), string(event.RequestObject))
		for key, value := range body.Metadata {
			require.Contains(t, []string{"uid", "labels", "annotations"}, key)
			if key == "annotations" {
				require.Regexp(t, `^\{"controller.kubernetes.io/pod-deletion-cost":("[12]00"|null)\}$`, string(value))
			}
		}
		bodies = append(bodies, string(event.RequestObject))
	}
	return bodies
}

// wrote waits until the labels of a pod were written this many times. The cost may come after them, alone: a new leader
// knows only after a while which nodes have Workspaces.
func (c *cluster) wrote(t *testing.T, pod *corev1.Pod, times int) {
	t.Helper()
	await.NoProblem(t, limit, "the API server has noted the writes", func() string {
		if got := labelWrites(c.writes(t, pod.Name)); len(got) != times {
			return fmt.Sprintf("warmpool wrote %s %d times; wanted: %d\n%s", pod.Name, len(got), times, strings.Join(got, "\n"))
		}
		return ""
	})
}

// labelWrites are the writes that change labels.
func labelWrites(bodies []string) []string {
	return slices.DeleteFunc(bodies, func(body string) bool { return !strings.Contains(body, `"labels"`) })
}

// counted waits until the gauge of the pool cpu has these values.
func counted(t *testing.T, w *install.Warmpool, want map[string]int) {
	t.Helper()
	await.NoProblem(t, limit, "the gauge", func() string {
		metrics := scrape(t, w)
		for _, state := range []string{"warm", "pulling", "failed", "pending"} {
			if line := fmt.Sprintf("warmpool_placeholders{pool=\"cpu\",state=%q} %d\n", state, want[state]); !strings.Contains(metrics, line) {
				return "it lacks " + line
			}
		}
		return ""
	})
}

// scrape gives the metrics of a replica.
func scrape(t *testing.T, w *install.Warmpool) string {
	t.Helper()
	text, err := install.Metrics(t.Context(), w.MetricsURL)
	require.NoError(t, err)
	return text
}
