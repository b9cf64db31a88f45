package imagesync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who opts out keeps the image, and is synced again after opting in.
func TestOptOut(t *testing.T) {
	t.Parallel()
	c := shared
	before := c.start(t, "opted-out", first)
	c.patchDeployment(t, "opted-out", `{"metadata": {"annotations": {"warmpool.sh/image-sync": "false"}}}`)
	c.wrote(t, "opted-out", 1)
	c.setImage(t, "opted-out", second)
	c.passed(t, "opted-out")
	assert.Equal(t, before.Spec, c.deployment(t, "opted-out").Spec)
	c.wrote(t, "opted-out", 1)
	assert.Empty(t, c.events(t, "Deployment", "opted-out", ""))
	c.patchDeployment(t, "opted-out", `{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 0, "initContainers": null}}}}`)
	assert.Empty(t, c.deployment(t, "opted-out").Spec.Template.Spec.InitContainers, "containers of who opted out are left alone")
	c.apply(t, replaced(t, manifest("opted-out", third), "namespace: overprovisioning", `annotations: {warmpool.sh/image-sync: "false"}
  namespace: overprovisioning`))
	assert.Equal(t, third, c.deployment(t, "opted-out").Spec.Template.Spec.InitContainers[0].Image)
	c.patchDeployment(t, "opted-out", `{"metadata": {"annotations": {"warmpool.sh/image-sync": null}}}`)
	c.synced(t, "opted-out", second)
}

// Where the rule is off or the placeholder exempt from it, neither the webhook nor image sync touches the images: one alone
// would fight with whoever sets them.
func TestRuleThatDoesNotApply(t *testing.T) {
	t.Parallel()
	c := shared
	for _, name := range []string{"rule-off", "exempt"} {
		c.setImage(t, name, first)
		c.apply(t, manifest(name, third))
		c.setImage(t, name, second)
	}
	c.passed(t, "exempt")
	for _, name := range []string{"rule-off", "exempt"} {
		assert.Equal(t, third, c.deployment(t, name).Spec.Template.Spec.InitContainers[0].Image)
		assert.Zero(t, c.writes(t, name))
		assert.Empty(t, c.events(t, "Deployment", name, ""))
	}
}

// A paused Deployment waits, and says so; when it goes on, it goes on with the image.
func TestPausedPlaceholderWaits(t *testing.T) {
	t.Parallel()
	c := shared
	c.start(t, "paused", first)
	require.Equal(t, 1, c.rollouts(t, "paused"))
	c.patchDeployment(t, "paused", `{"spec": {"paused": true}}`)
	paused := c.deployment(t, "paused")
	c.wrote(t, "paused", 1)
	c.setImage(t, "paused", second)
	c.told(t, "Deployment", "paused", "ImageSyncWaiting", second+" is due, and waits because it is paused")
	c.passed(t, "paused")
	assert.Equal(t, paused.Spec, c.deployment(t, "paused").Spec)
	c.patchDeployment(t, "paused", `{"spec": {"paused": false}}`)
	c.synced(t, "paused", second)
	c.wrote(t, "paused", 2)
	assert.Equal(t, 2, c.rollouts(t, "paused"))
	assert.Len(t, c.events(t, "Deployment", "paused", "ImageSyncWaiting"), 1)
}

// A placeholder with no replicas is synced too, so that the first one starts with the right image.
func TestPlaceholderScaledToZeroIsSynced(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "zero", first)
	c.apply(t, replaced(t, manifest("zero", first), "replicas: 1", "replicas: 0"))
	c.synced(t, "zero", first)
	c.wrote(t, "zero", 1)
	c.setImage(t, "zero", second)
	c.synced(t, "zero", second)
	c.wrote(t, "zero", 2)
	_, _, err := c.Kubectl(t.Context(), "", "scale", "deployment/zero", "-n", placeholders, "--replicas=1")
	require.NoError(t, err)
	assert.Equal(t, second, c.deployment(t, "zero").Spec.Template.Spec.InitContainers[0].Image)
}
