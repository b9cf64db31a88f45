package imagesync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const foreign = `      - {name: before, image: "example.com/before:1", command: [sh, -c, "true"], resources: &r {requests: {cpu: 10m, memory: 8Mi}, limits: {cpu: 10m, memory: 8Mi}}}
      - name: pull-workspace-image
        image: registry.example/notebook:1
        imagePullPolicy: IfNotPresent
        command: [/bin/true]
        args: ["--quiet"]
        resources: *r
      - {name: between, image: "example.com/between:1", command: [sh, -c, "true"], resources: *r}
      - {name: pull-workspace-image-data, image: "example.com/data:1", imagePullPolicy: IfNotPresent, command: [sh, -c, "true"], resources: *r}
      - {name: after, image: "example.com/after:1", command: [sh, -c, "true"], resources: *r}
`

// Containers of others stay as they are and in their order; of its own, image sync changes the image alone: an image
// without a shell keeps the command that its admin gave.
func TestOtherContainersAndTheCommandStay(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "foreign", first)
	c.apply(t, withInit(t, manifest("foreign", first), foreign))
	before := c.synced(t, "foreign", first)
	c.setImage(t, "foreign", "registry.example/distroless:1")
	after := c.synced(t, "foreign", "registry.example/distroless:1")
	want := *before.Spec.Template.DeepCopy()
	want.Spec.InitContainers[1].Image = "registry.example/distroless:1"
	assert.Equal(t, want, after.Spec.Template)
	assert.Equal(t, "before pull-workspace-image between pull-workspace-image-data after", names(after.Spec.Template.Spec.InitContainers))
}

func names(containers []corev1.Container) (text string) {
	for i := range containers {
		if i > 0 {
			text += " "
		}
		text += containers[i].Name
	}
	return text
}

// Two templates of a pool have a container each, a copy of the first; when both have the same image, one goes, by its
// name, in one rollout, and the containers of others do not notice.
func TestTwoTemplatesOfAPool(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "pair-a", first)
	c.setImage(t, "pair-b", first)
	c.apply(t, withInit(t, manifest("pair", first), foreign))
	before := c.synced(t, "pair", first)
	ownsTheImagesAlone(t, before)
	require.Equal(t, 1, c.rollouts(t, "pair"))

	c.setImage(t, "pair-b", second)
	two := c.synced(t, "pair", first, second)
	assert.Equal(t, 2, c.rollouts(t, "pair"))
	init := two.Spec.Template.Spec.InitContainers
	assert.Equal(t, "before pull-workspace-image between pull-workspace-image-data after pull-workspace-image-2", names(init))
	copied := *init[1].DeepCopy()
	copied.Name, copied.Image = "pull-workspace-image-2", second
	assert.Equal(t, copied, init[5])
	assert.Equal(t, before.Spec.Template.Spec.InitContainers, init[:5])
	assert.Empty(t, c.events(t, "WorkspaceTemplate", "pair-a", ""), "no one edited that one")
	c.told(t, "WorkspaceTemplate", "pair-b", "ImageSynced", first+", "+second)

	c.setImage(t, "pair-a", third)
	c.synced(t, "pair", third, second)
	assert.Equal(t, 3, c.rollouts(t, "pair"))

	c.setImage(t, "pair-a", second)
	one := c.synced(t, "pair", second)
	assert.Equal(t, 4, c.rollouts(t, "pair"))
	want := *before.Spec.Template.DeepCopy()
	want.Spec.InitContainers[1].Image = second
	assert.Equal(t, want, one.Spec.Template)

	// Another manifest of old does not bring the container back, and a new one has it again.
	c.apply(t, withInit(t, manifest("pair", first), foreign))
	c.setImage(t, "pair-a", first)
	c.synced(t, "pair", first, second)
	assert.Equal(t, 4, c.rollouts(t, "pair"), "the second pod template again")
}

// With prePull Allowed all images of a template are pulled.
func TestAllowedImages(t *testing.T) {
	t.Parallel()
	c := shared
	c.apply(t, templateText("v1alpha1", "allowed", `{defaultImage: "`+first+`", allowedImages: ["`+second+`", "`+first+`"]}`))
	c.apply(t, manifest("allowed", first))
	c.synced(t, "allowed", first, second)
	before := c.rollouts(t, "allowed") // perhaps one with the first image alone
	c.patchTemplate(t, "allowed", `{"spec": {"allowedImages": ["`+third+`", "`+second+`"]}}`)
	c.synced(t, "allowed", first, third, second)
	assert.Equal(t, before+1, c.rollouts(t, "allowed"))
	c.patchTemplate(t, "allowed", `{"spec": {"allowedImages": null}}`)
	c.synced(t, "allowed", first)
}
