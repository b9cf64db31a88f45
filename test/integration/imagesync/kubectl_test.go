package imagesync_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/needs"
)

// What a user reads who applies, changes and looks at a placeholder by kubectl.
func TestWhatKubectlShows(t *testing.T) {
	needs.Check(t, needs.Diff, needs.Program("diff", "diffutils"))
	t.Parallel()
	c := shared
	c.setImage(t, "kubectl", first)
	text := replaced(t, manifest("kubectl", first), "  selector: {matchLabels", "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n  selector: {matchLabels")
	c.known(t, "kubectl")
	const keeps = "Warning: placeholder-image: pull-workspace-image keeps registry.example/notebook:2, which warmpool synced\n"
	show := func(what, input, wantOut, wantErr string, args ...string) {
		t.Helper()
		stdout, stderr := c.kubectl(t, input, append(args, "-n", placeholders)...)
		assert.Equal(t, wantOut, stdout, what)
		assert.Equal(t, wantErr, stderr, what)
	}
	apply := []string{"apply", "-f", "-"}
	show("a new placeholder", text, "deployment.apps/kubectl created\n", "", apply...)
	c.synced(t, "kubectl", first)
	require.Equal(t, 1, c.rollouts(t, "kubectl"))
	show("no drift", text, "", "", "diff", "-f", "-")
	show("nothing new", text, "deployment.apps/kubectl unchanged\n", "", apply...)
	c.setImage(t, "kubectl", second)
	c.synced(t, "kubectl", second)

	require.Equal(t, 2, c.rollouts(t, "kubectl"))
	show("no drift after a sync either, for the API server's answer counts", text, "", keeps, "diff", "-f", "-")
	show("an old manifest", text, "deployment.apps/kubectl configured\n", keeps, apply...)
	show("an old manifest by another way", text, "deployment.apps/kubectl serverside-applied\n", keeps, append(apply, "--server-side", "--force-conflicts")...)
	show("an image by hand", "", "deployment.apps/kubectl image updated\n", keeps, "set", "image", "deployment/kubectl", pull+"="+third)
	_, stderr := c.kubectl(t, "", "rollout", "undo", "deployment/kubectl", "-n", placeholders)
	assert.Contains(t, stderr, keeps)
	c.synced(t, "kubectl", second) // undo takes the annotations back too; image sync notes them again
	show("a dry run", text, "deployment.apps/kubectl configured (server dry run)\n", keeps, append(apply, "--dry-run=server")...)
	show("an old manifest in place of all that is there", text, "deployment.apps/kubectl replaced\n", keeps, "replace", "-f", "-")
	c.passed(t, "kubectl")
	assert.Equal(t, 2, c.rollouts(t, "kubectl"))
	assert.Equal(t, second, c.deployment(t, "kubectl").Spec.Template.Spec.InitContainers[0].Image)

	described, _ := c.kubectl(t, "", "describe", "deployment", "kubectl", "-n", placeholders)
	_, events, found := strings.Cut(described, "Events:\n")
	require.True(t, found, described)
	var lines []string
	for line := range strings.Lines(events) {
		if words := strings.Fields(line); len(words) > 4 && words[1] == "ImageSynced" {
			lines = append(lines, strings.Join(append(words[:2], words[3:]...), " "))
		}
	}
	assert.Equal(t, []string{"Normal ImageSynced warmpool Deployment overprovisioning/kubectl of pool kubectl pulls " + second + " now (before: " + first + ")"}, lines)
	described, _ = c.kubectl(t, "", "describe", "workspacetemplates", "kubectl", "-n", templates)
	assert.Contains(t, described, "ImageSynced")
}

// known waits until warmpool knows the template of a pool: a dry run says nothing.
func (c *cluster) known(t *testing.T, pool string) {
	t.Helper()
	await.NoProblem(t, limit, "warmpool knows the template of "+pool, func() string {
		_, stderr := c.kubectl(t, manifest(pool, first), "apply", "-f", "-", "--dry-run=server")
		if strings.Contains(stderr, "placeholder-image") {
			return stderr
		}
		return ""
	})
}

// kubectl rollout status waits for a sync as for any other rollout.
func TestRolloutStatus(t *testing.T) {
	t.Parallel()
	c := shared
	c.start(t, "status", first)
	c.complete(t, "status")
	c.setImage(t, "status", second)
	c.synced(t, "status", second)
	stdout, _ := c.kubectl(t, "", "rollout", "status", "deployment/status", "-n", placeholders)
	assert.True(t, strings.HasSuffix(stdout, "deployment \"status\" successfully rolled out\n"), stdout)
}

// A dry run has the answer of a real request and leaves nothing behind.
func TestDryRunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c := shared
	c.start(t, "dry-run", first)
	c.setImage(t, "dry-run", second)
	c.synced(t, "dry-run", second)
	c.rollouts(t, "dry-run")
	before := c.deployment(t, "dry-run")
	c.wrote(t, "dry-run", 2)
	c.told(t, "Deployment", "dry-run", "ImageSynced")
	synced := c.metric(t, "warmpool_image_sync_total", `pool="dry-run"`)
	for _, args := range [][]string{
		{"apply", "-f", "-", "--dry-run=server"},
		{"apply", "-f", "-", "--dry-run=server", "--server-side", "--force-conflicts"},
		{"replace", "-f", "-", "--dry-run=server"},
	} {
		_, stderr := c.kubectl(t, manifest("dry-run", third), args...)
		assert.Contains(t, stderr, "Warning: placeholder-image: pull-workspace-image keeps "+second+", which warmpool synced\n")
	}
	c.passed(t, "dry-run")
	after := c.deployment(t, "dry-run")
	assert.Equal(t, before.Spec, after.Spec)
	assert.Equal(t, withoutRevision(before), withoutRevision(after))
	c.wrote(t, "dry-run", 2)
	assert.Len(t, c.events(t, "Deployment", "dry-run", ""), 1)
	assert.Equal(t, synced, c.metric(t, "warmpool_image_sync_total", `pool="dry-run"`))
}
