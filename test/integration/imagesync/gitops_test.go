package imagesync_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/webhook/controller/imagesync"
)

// drift is what Argo CD compares: the fields that a manifest and the live object have with different values, but for
// those that the managers in ignoreDifferences.managedFieldsManagers own. It goes about it as Argo CD does.
func drift(t *testing.T, text string, live *appsv1.Deployment, managers ...string) []string {
	t.Helper()
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	objects, err := controlplane.Decode(strings.NewReader(text))
	require.NoError(t, err)
	config, err := converter.ObjectToTyped(objects[0])
	require.NoError(t, err)
	was := live.DeepCopy()
	was.APIVersion, was.Kind = "apps/v1", "Deployment"
	is, err := converter.ObjectToTyped(was)
	require.NoError(t, err)
	modified := compare(t, is, config)
	for _, entry := range live.ManagedFields {
		for _, manager := range managers {
			if entry.Manager == manager {
				var owned fieldpath.Set
				require.NoError(t, owned.FromJSON(entry.FieldsV1.GetRawReader()))
				both := owned.Intersection(modified)
				is, config = is.RemoveItems(both), config.RemoveItems(both)
			}
		}
	}
	var paths []string
	compare(t, is, config).Iterate(func(p fieldpath.Path) { paths = append(paths, p.String()) })
	return paths
}

func compare(t *testing.T, live, config *typed.TypedValue) *fieldpath.Set {
	t.Helper()
	comparison, err := live.Compare(config)
	require.NoError(t, err)
	return comparison.Modified
}

const imagePath = `.spec.template.spec.initContainers[name="pull-workspace-image"].image`

// Argo CD, which compares by itself: the image in Git is behind, and an ignore rule for the field manager hides that, as
// long as no one writes the image of old. Who does becomes its owner, although the webhook keeps the value: a rule for the
// path holds then too.
func TestArgoCDIgnoresWhatImageSyncOwns(t *testing.T) {
	t.Parallel()
	c := shared
	text := replaced(t, manifest("argo", first), "  selector: {matchLabels", "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n  selector: {matchLabels")
	c.setImage(t, "argo", first)
	apply := []string{"apply", "-f", "-", "--field-manager=argocd-controller"}
	c.kubectl(t, text, apply...)
	c.synced(t, "argo", first)
	require.Equal(t, 1, c.rollouts(t, "argo"))
	assert.Empty(t, drift(t, text, c.deployment(t, "argo")))
	c.setImage(t, "argo", second)
	live := c.synced(t, "argo", second)
	assert.Equal(t, []string{imagePath}, drift(t, text, live))
	assert.Empty(t, drift(t, text, live, imagesync.FieldManager))

	// RespectIgnoreDifferences=true: what is applied has the live image.
	c.kubectl(t, replaced(t, text, first, second), apply...)
	assert.Empty(t, drift(t, text, c.deployment(t, "argo"), imagesync.FieldManager))

	c.kubectl(t, text, apply...)
	live = c.synced(t, "argo", second)
	assert.Equal(t, []string{imagePath}, drift(t, text, live, imagesync.FieldManager))
	assert.Equal(t, 2, c.rollouts(t, "argo"), "no sync of these rolled anything out")
}

// Flux, and Argo CD with ServerSideDiff and IncludeMutationWebhook, compare with the API server's answer to a dry run: it
// has the synced image, so there is no drift and nothing to ignore.
func TestFluxSeesNoDrift(t *testing.T) {
	t.Parallel()
	c := shared
	text := manifest("flux", first)
	c.setImage(t, "flux", first)
	apply := []string{"apply", "-f", "-", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"}
	c.kubectl(t, text, apply...)
	c.synced(t, "flux", first)
	require.Equal(t, 1, c.rollouts(t, "flux"))
	c.setImage(t, "flux", second)
	c.synced(t, "flux", second)
	c.rollouts(t, "flux")
	for range 2 { // and after Flux has taken the image over
		before := c.deployment(t, "flux")
		stdout, _ := c.kubectl(t, text, append(apply, "--dry-run=server", "-o", "json")...)
		var answer appsv1.Deployment
		require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
		assert.Equal(t, before.Spec, answer.Spec)
		assert.Equal(t, before.Labels, answer.Labels)
		assert.Equal(t, withoutRevision(before), withoutRevision(&answer))
		c.kubectl(t, text, apply...)
	}
	c.setImage(t, "flux", third)
	c.synced(t, "flux", third)
	assert.Equal(t, 3, c.rollouts(t, "flux"))
}

// A manifest can leave the image out: the webhook fills it in, and then no one but image sync has an opinion on it,
// however the manifest is applied.
func TestManifestWithoutTheImage(t *testing.T) {
	for name, apply := range map[string][]string{
		"left-out":        {"apply", "-f", "-"},
		"left-out-server": {"apply", "-f", "-", "--server-side", "--field-manager=gitops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared
			text := replaced(t, manifest(name, first), "        image: "+first+"\n", "")
			_, _, err := c.Kubectl(t.Context(), text, apply...)
			require.ErrorContains(t, err, "spec.template.spec.initContainers[0].image: Required value", "no template tells one")
			c.setImage(t, name, first)
			c.known(t, name)
			c.kubectl(t, text, apply...)
			c.synced(t, name, first)
			require.Equal(t, 1, c.rollouts(t, name))
			_, stderr := c.kubectl(t, text, apply...)
			assert.NotContains(t, stderr, "placeholder-image: ")
			c.setImage(t, name, second)
			c.synced(t, name, second)
			_, stderr = c.kubectl(t, text, apply...)
			assert.NotContains(t, stderr, "placeholder-image: ")
			live := c.synced(t, name, second)
			assert.NotContains(t, drift(t, text, live), imagePath)
			assert.Equal(t, 2, c.rollouts(t, name))
		})
	}
}
