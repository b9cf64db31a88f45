package imagesync_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubectl runs kubectl with a manifest on its standard input; a command that fails fails the test. One that a controller's
// write came in the way of is run again, as its message asks: kubectl apply does that by itself, kubectl replace does not.
func (c *cluster) kubectl(t *testing.T, input string, args ...string) (stdout, stderr string) {
	t.Helper()
	for again := true; again; {
		var err error
		stdout, stderr, err = c.Kubectl(t.Context(), input, args...)
		again = strings.Contains(stderr, "please apply your changes to the latest version and try again")
		require.True(t, again || err == nil, "%v", err)
	}
	return stdout, stderr
}

// A second writer that applies the image of old again and again rolls nothing out, with or without server-side apply: the
// only rollout is the template's own.
func TestSecondWriterRollsNothingOut(t *testing.T) {
	for name, apply := range map[string][]string{
		"client-side": {"apply", "-f", "-"},
		"server-side": {"apply", "-f", "-", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared
			c.setImage(t, name, first)
			c.kubectl(t, manifest(name, first), apply...)
			c.synced(t, name, first)
			require.Equal(t, 1, c.rollouts(t, name))
			for i := range 20 {
				if i == 5 {
					c.setImage(t, name, second)
				}
				c.kubectl(t, manifest(name, first), apply...)
			}
			c.synced(t, name, second)
			assert.Equal(t, 2, c.rollouts(t, name))
			c.wrote(t, name, 2) // the record of the first image, and the second image
			c.told(t, "Deployment", name, "ImageSynced")
			assert.Len(t, c.events(t, "Deployment", name, ""), 1)
		})
	}
}

// Without force the API server tells of the conflict, and by whom.
func TestServerSideApplyWithoutForceConflicts(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "conflict", first)
	apply := []string{"apply", "-f", "-", "--server-side", "--field-manager=gitops"}
	c.kubectl(t, manifest("conflict", first), apply...)
	c.synced(t, "conflict", first)
	c.kubectl(t, manifest("conflict", first), apply...)
	c.setImage(t, "conflict", second)
	c.synced(t, "conflict", second)
	_, _, err := c.Kubectl(t.Context(), manifest("conflict", first), apply...)
	require.ErrorContains(t, err, `Apply failed with 1 conflict: conflict with "warmpool-image-sync": .spec.template.spec.initContainers[name="pull-workspace-image"].image`)
	c.kubectl(t, manifest("conflict", second), apply...)
	c.synced(t, "conflict", second)
}

// A writer that no webhook sees is answered twice; then image sync leaves the image and names the writer.
func TestSecondWriterThatTheWebhookDoesNotSee(t *testing.T) {
	t.Parallel()
	c := shared
	text := replaced(t, manifest("unseen", first), "labels: {app: spaces-overprovisioning, ", `labels: {app: spaces-overprovisioning, example.com/unseen: "yes", `)
	c.setImage(t, "unseen", second)
	c.kubectl(t, text, "apply", "-f", "-")
	c.synced(t, "unseen", second)
	for range 2 {
		c.kubectl(t, text, "apply", "-f", "-")
		c.synced(t, "unseen", second)
	}
	c.kubectl(t, text, "apply", "-f", "-")
	event := c.told(t, "Deployment", "unseen", "ImageSyncBackOff")
	assert.Equal(t, "another writer takes back "+second+" to "+first+" again and again: image sync waits for 10m0s; field manager: kubectl-client-side-apply", event.Note)
	for range 2 {
		c.kubectl(t, text, "apply", "-f", "-")
	}
	c.passed(t, "unseen")
	after := c.deployment(t, "unseen")
	assert.Equal(t, first, after.Spec.Template.Spec.InitContainers[0].Image)
	c.wrote(t, "unseen", 3) // the template's image, and two answers
	assert.Len(t, c.events(t, "Deployment", "unseen", "ImageSyncBackOff"), 1)
	assert.EqualValues(t, 3, c.metric(t, "warmpool_image_sync_total", `pool="unseen",result="synced"`))
	assert.EqualValues(t, 1, c.metric(t, "warmpool_image_sync_total", `pool="unseen",result="backed_off"`))

	c.setImage(t, "unseen", third)
	c.synced(t, "unseen", third)
	c.kubectl(t, text, "apply", "-f", "-")
	c.told(t, "Deployment", "unseen", "ImageSyncBackOff", third)
	assert.Equal(t, first, c.deployment(t, "unseen").Spec.Template.Spec.InitContainers[0].Image)
}
