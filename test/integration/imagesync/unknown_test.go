package imagesync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where no image is known, the last one stays and an Event says what to fix; names are resolved as far as the
// configuration knows how.
func TestImageThatIsNotKnownKeepsTheLastOne(t *testing.T) {
	t.Parallel()
	c := shared
	before := c.start(t, "unknown", first)
	require.Equal(t, 1, c.rollouts(t, "unknown"))
	c.wrote(t, "unknown", 1)
	kept := func(reasons ...string) {
		t.Helper()
		event := c.told(t, "Deployment", "unknown", "ImageSyncBlocked", append([]string{"Deployment overprovisioning/unknown keeps the image that it had: "}, reasons...)...)
		assert.Equal(t, corev1.EventTypeWarning, event.Type)
		c.passed(t, "unknown")
		after := c.deployment(t, "unknown")
		assert.Equal(t, before.Spec, after.Spec)
		assert.Equal(t, withoutRevision(before), withoutRevision(after))
		c.wrote(t, "unknown", 1)
	}
	const where = " of WorkspaceTemplate shared-templates/unknown "
	c.patchTemplate(t, "unknown", `{"spec": {"defaultImage": null}}`)
	kept("defaultImage \"\""+where+"is empty", "name an image")
	c.told(t, "WorkspaceTemplate", "unknown", "ImageSyncBlocked", "is empty")
	c.setImage(t, "unknown", "nb:1")
	kept("defaultImage \"nb:1\"" + where + "is a bare name: set workspaces.imageRegistry or imageAliases")
	c.told(t, "WorkspaceTemplate", "unknown", "ImageSyncBlocked", "is a bare name")
	c.setImage(t, "unknown", "Registry.example/NB:1 ")
	kept("is no image reference")
	c.patchTemplate(t, "unknown", `{"spec": {"defaultImage": {"name": "nb"}}}`)
	kept("cannot be read")
	require.NoError(t, c.admin.Delete(t.Context(), template("unknown")))
	kept("WorkspaceTemplate shared-templates/unknown does not exist")

	c.setImage(t, "unknown", "uv")
	c.synced(t, "unknown", aliases["uv"])
	require.Equal(t, 2, c.rollouts(t, "unknown"))
	c.setImage(t, "unknown", "registry.example/notebook@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	c.synced(t, "unknown", "registry.example/notebook@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	assert.Equal(t, 3, c.rollouts(t, "unknown"))
}

// Without a container to pull with there is an Event, and nothing is added.
func TestPlaceholderWithoutThePullContainer(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "containerless", first)
	text := withInit(t, manifest("containerless", first), "      - {name: other, image: \"example.com/other:1\", command: [sh], resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {cpu: 10m, memory: 8Mi}}}\n")
	c.apply(t, text)
	c.told(t, "Deployment", "containerless", "ImageSyncBlocked", "no init container is called pull-workspace-image: add one")
	c.setImage(t, "containerless", second)
	c.passed(t, "containerless")
	assert.Equal(t, "other", names(c.deployment(t, "containerless").Spec.Template.Spec.InitContainers))
	assert.Zero(t, c.writes(t, "containerless"))
	assert.Len(t, c.events(t, "Deployment", "containerless", ""), 1)
}

// A placeholder that two pools claim belongs to none.
func TestPlaceholderOfTwoPoolsIsRefused(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "either-a", first)
	c.setImage(t, "either-b", second)
	text := replaced(t, manifest("either-a", third), "warmpool.sh/pool: either-a", "example.com/of: nobody")
	text = named(replaced(t, text, "      nodeSelector: {example.com/pool: either-a}\n      affinity:\n", `      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: example.com/pool, operator: In, values: [either-a, either-b]}]}]
`), "either")
	text = replaced(t, text, "example.com/of: nobody", "example.com/unseen: \"yes\"") // the webhook would deny it
	c.apply(t, text)
	for kind, names := range map[string][]string{"Deployment": {"either"}, "WorkspaceTemplate": {"either-a", "either-b"}} {
		for _, name := range names {
			event := c.told(t, kind, name, "ImageSyncBlocked")
			assert.Equal(t, "image sync leaves Deployment overprovisioning/either alone: it could belong to any of the pools either-a, either-b", event.Note)
			assert.Equal(t, corev1.EventTypeWarning, event.Type)
		}
	}
	c.setImage(t, "either-a", second)
	c.passed(t, "either-a")
	assert.Zero(t, c.writes(t, "either"))
}

// A Deployment of a Workspace is never a placeholder, whatever labels it copied.
func TestDeploymentOfAWorkspaceIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := shared
	c.setImage(t, "workspace", first)
	text := replaced(t, manifest("workspace", third), "labels: {app: spaces-overprovisioning, ", "labels: {app: jupyter, workspace.jupyter.org/workspace-name: w1, ")
	text = replaced(t, text, "labels: {placeholder: workspace}\n      annotations", "labels: {placeholder: workspace, app: jupyter, workspace.jupyter.org/workspace-name: w1, warmpool.sh/pool: workspace}\n      annotations")
	c.apply(t, text)
	c.setImage(t, "workspace", second)
	c.passed(t, "workspace")
	assert.Equal(t, third, c.deployment(t, "workspace").Spec.Template.Spec.InitContainers[0].Image)
	assert.Zero(t, c.writes(t, "workspace"))
	assert.Empty(t, c.events(t, "Deployment", "workspace", ""))
}

// Outside the namespace where warmpool may write, an Event says so; at admission the image is set there too.
func TestPlaceholderInAnotherNamespace(t *testing.T) {
	t.Parallel()
	c := shared
	require.NoError(t, c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apart"}}))
	c.setImage(t, "elsewhere", first)
	text := replaced(t, manifest("elsewhere", first), "namespace: overprovisioning", "namespace: apart")
	c.apply(t, text)
	c.setImage(t, "elsewhere", second)
	c.told(t, "Deployment", "elsewhere", "ImageSyncBlocked", "image sync may write in namespace overprovisioning only")
	c.passed(t, "elsewhere")
	d := c.deployment(t, "after-elsewhere") // of the same kind
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: "apart", Name: "elsewhere"}, d))
	assert.Equal(t, first, d.Spec.Template.Spec.InitContainers[0].Image)
	assert.Zero(t, c.writes(t, "elsewhere"))
	c.apply(t, replaced(t, text, "notebook:1", "notebook:0"))
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	assert.Equal(t, second, d.Spec.Template.Spec.InitContainers[0].Image)
}
