package imagesync_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/webhook/config"
)

// In a cluster of its own: WorkspaceTemplates come later than warmpool, in a version of the future; sync starts by
// itself. Afterwards warmpool is restarted, and another replica leads: nothing is written again.
func TestTemplatesComeLaterThenWarmpoolIsRestarted(t *testing.T) {
	t.Parallel()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{AuditPolicy: auditPolicy, Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	c, err := newCluster(t.Context(), plane, false)
	require.NoError(t, err)
	// A registry is set here: names without a slash are complete with it.
	require.NoError(t, c.configure(t.Context(), &config.WarmPoolConfiguration{Workspaces: config.Workspaces{ImageRegistry: new("registry.example/team")}, Pools: simplePools("late")}))
	c.apply(t, manifest("late", first))
	assert.Empty(t, c.deployment(t, "late").Annotations)

	c.installFutureCRD(t)
	c.apply(t, templateText("v1beta1", "late", `{defaultImage: "nb"}`))
	asked := time.Now()
	c.synced(t, "late", "registry.example/team/nb:latest")
	assert.Less(t, time.Since(asked), time.Minute)
	c.apply(t, templateText("v1beta1", "late", `{defaultImage: "nb:2"}`))
	before := c.synced(t, "late", "registry.example/team/nb:2")
	c.wrote(t, "late", 2)
	c.told(t, "WorkspaceTemplate", "late", "ImageSynced", "nb:2 now")
	assert.Len(t, c.events(t, "WorkspaceTemplate", "late", "ImageSynced"), 2)
	require.NoError(t, c.checkLog())

	c.restart(t)
	c.apply(t, templateText("v1beta1", "after-late", `{defaultImage: "after:1"}`))
	c.apply(t, manifest("after-late", first))
	c.synced(t, "after-late", "registry.example/team/after:1")
	c.apply(t, templateText("v1beta1", "after-late", `{defaultImage: "after:2"}`))
	c.synced(t, "after-late", "registry.example/team/after:2")
	c.wrote(t, "late", 2)
	after := c.deployment(t, "late")
	assert.Equal(t, before.ResourceVersion, after.ResourceVersion)
	require.NoError(t, c.checkLog())
}

func (c *cluster) installFutureCRD(t *testing.T) {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	crds, err := install.CRDs(root)
	require.NoError(t, err)
	for _, crd := range crds {
		if strings.HasPrefix(crd.GetName(), "workspacetemplates.") {
			versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
			require.NoError(t, err)
			version, ok := versions[0].(map[string]any)
			require.True(t, ok)
			version["name"] = "v1beta1"
			require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
			require.NoError(t, c.Apply(t.Context(), crd))
		}
	}
}

// restart has a second replica lead, and a new first one answer the API server.
func (c *cluster) restart(t *testing.T) {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	shipped, err := install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	content, err := os.ReadFile(c.warmpool.ConfigFile)
	require.NoError(t, err)
	configuration := filepath.Join(t.TempDir(), "warmpool.yaml")
	require.NoError(t, os.WriteFile(configuration, content, 0o600))
	start := func(port int) *install.Warmpool {
		w, err := install.Start(t.Context(), c.ControlPlane, filepath.Join(c.Dir, "warmpool"), shipped, port, "--config="+configuration)
		require.NoError(t, err)
		return w
	}
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	second := start(port)
	require.NoError(t, c.warmpool.Stop())
	c.warmpool = start(c.warmpool.WebhookPort)
	c.warmpool.ConfigFile = configuration
	await.NoProblem(t, limit, "the second replica leads", func() string {
		log, err := os.ReadFile(second.Log)
		require.NoError(t, err)
		if strings.Contains(string(log), "successfully acquired lease") || strings.Contains(string(log), "Starting workers") {
			return ""
		}
		return string(log)
	})
}
