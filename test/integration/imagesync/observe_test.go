package imagesync_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/prepull"
)

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

// synced waits until a placeholder pulls exactly the images, and says in its annotations that this is what was synced.
func (c *cluster) synced(t *testing.T, name string, images ...string) *appsv1.Deployment {
	t.Helper()
	var d *appsv1.Deployment
	await.NoProblem(t, limit, name+" is synced", func() string {
		d = c.deployment(t, name)
		got := prepull.Pulled(d.Spec.Template.Spec.InitContainers)
		if slices.Equal(got, images) && prepull.RecordOf(d.Annotations).Covers(images) {
			return ""
		}
		return fmt.Sprintf("%s pulls %q, and its record is %q; wanted: %q", name, got, d.Annotations[prepull.SyncedImage], images)
	})
	return d
}

// start makes the template and the placeholder of a pool and waits until both agree.
func (c *cluster) start(t *testing.T, pool, image string) *appsv1.Deployment {
	t.Helper()
	c.setImage(t, pool, image)
	c.apply(t, manifest(pool, image))
	return c.synced(t, pool, image)
}

// passed returns when warmpool has looked at all that the test of a pool did before: it has synced a placeholder of another
// pool for a change that came later.
func (c *cluster) passed(t *testing.T, pool string) {
	t.Helper()
	after := "after-" + pool
	var d appsv1.Deployment
	err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: placeholders, Name: after}, &d)
	if client.IgnoreNotFound(err) != nil {
		require.NoError(t, err)
	} else if err != nil {
		c.start(t, after, "registry.example/after:1")
	}
	image := "registry.example/after:next-to-" + d.ResourceVersion
	c.setImage(t, after, image)
	c.synced(t, after, image)
}

// events are those about an object, by reason; not those of audits.
func (c *cluster) events(t *testing.T, kind, name, reason string) []eventsv1.Event {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, c.admin.List(t.Context(), &list))
	var found []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name && (reason == "" || e.Reason == reason) && e.ReportingController == "warmpool" && e.Action != "Audit" {
			found = append(found, e)
		}
	}
	return found
}

// told waits for an Event about an object whose note contains all parts.
func (c *cluster) told(t *testing.T, kind, name, reason string, parts ...string) eventsv1.Event {
	t.Helper()
	var found eventsv1.Event
	await.NoProblem(t, limit, "an Event "+reason+" on "+kind+" "+name, func() string {
		problem := fmt.Sprintf("no Event %s on %s %s", reason, kind, name)
		for _, e := range c.events(t, kind, name, reason) {
			problem = "another note: " + e.Note
			if containsAll(e.Note, parts) {
				found = e
				return ""
			}
		}
		return problem
	})
	return found
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// writes counts the requests by which warmpool wrote, or tried to write, a Deployment.
func (c *cluster) writes(t *testing.T, name string) int {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(c.Dir, "audit.log"))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	count := 0
	for line := range bytes.Lines(log) {
		var event struct {
			User      struct{ Username string }
			ObjectRef struct{ Name string }
		}
		if json.Unmarshal(line, &event) == nil && event.User.Username == warmpoolUser && event.ObjectRef.Name == name {
			count++
		}
	}
	return count
}

// wrote waits until there are this many writes; one more that came later would be told at the next look.
func (c *cluster) wrote(t *testing.T, name string, times int) {
	t.Helper()
	await.NoProblem(t, limit, "the API server has noted the writes", func() string {
		if got := c.writes(t, name); got != times {
			return fmt.Sprintf("warmpool wrote %s %d times; wanted: %d", name, got, times)
		}
		return ""
	})
}

// rollouts counts those of a placeholder, the first one too, by its ReplicaSets, the one for what is in the Deployment now
// among them. (Its generation says less: annotations count there, the Deployment controller's own too.)
func (c *cluster) rollouts(t *testing.T, name string) (count int) {
	t.Helper()
	await.NoProblem(t, limit, "the Deployment controller has made the ReplicaSet of "+name, func() string {
		var list appsv1.ReplicaSetList
		require.NoError(t, c.admin.List(t.Context(), &list, client.InNamespace(placeholders), client.MatchingLabels{"placeholder": name}))
		count = len(list.Items)
		want := c.deployment(t, name).Spec.Template.Spec
		for i := range list.Items {
			if equality.Semantic.DeepEqual(list.Items[i].Spec.Template.Spec, want) {
				return ""
			}
		}
		return "none of its ReplicaSets has its pod template"
	})
	return count
}

// metric is the sum of the samples of a metric whose labels contain the text.
func (c *cluster) metric(t *testing.T, name, labels string) float64 {
	t.Helper()
	sum, err := c.readMetric(t.Context(), name, labels)
	require.NoError(t, err)
	return sum
}

func (c *cluster) readMetric(ctx context.Context, name, labels string) (sum float64, err error) {
	sum, _, err = install.Metric(ctx, c.warmpool.MetricsURL, name, labels)
	return sum, err
}

// logged are the lines of warmpool's log that contain all parts.
func (c *cluster) logged(t *testing.T, parts ...string) []string {
	t.Helper()
	log, err := os.ReadFile(c.warmpool.Log)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(log)) {
		if containsAll(line, parts) {
			lines = append(lines, line)
		}
	}
	return lines
}
