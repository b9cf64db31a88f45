package apiserver_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/test/harness/install"
)

// What is in Git is what is in the cluster: of each shipped placeholder every field that is set comes out as it went in,
// and to apply it again changes nothing.
func TestShippedPlaceholders(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	shipped, err := install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	u := newUser(t)
	found := 0
	for _, object := range shipped {
		if object.GetKind() != "Deployment" || !strings.HasPrefix(object.GetName(), "spaces-placeholder-") {
			continue
		}
		found++
		t.Run(object.GetName(), func(t *testing.T) {
			deployments := u.AppsV1().Deployments(object.GetNamespace())
			require.NoError(t, deployments.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}))
			content, err := object.MarshalJSON()
			require.NoError(t, err)
			apply := func(dry ...string) *unstructured.Unstructured {
				u.warnings(t)
				_, err := deployments.Patch(t.Context(), object.GetName(), types.ApplyPatchType, content, metav1.PatchOptions{FieldManager: "gitops", DryRun: dry})
				require.NoError(t, err)
				assert.Empty(t, u.warnings(t))
				live := &unstructured.Unstructured{}
				live.SetGroupVersionKind(object.GroupVersionKind())
				require.NoError(t, admin.Get(t.Context(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, live))
				return live
			}
			before := metric(t, "warmpool_admissions_total", `verdict="patched"`)
			apply()
			// Image sync notes what it finds; that is all it writes, and no part of the manifest.
			var first *unstructured.Unstructured
			eventually(t, "image sync knows the placeholder", func() bool {
				first = apply()
				return first.GetAnnotations()["warmpool.sh/synced-image"] != ""
			})
			subset(t, object.GetName(), object.Object, first.Object)
			assert.Equal(t, first, apply(metav1.DryRunAll))
			second := apply()
			assert.Equal(t, first.GetResourceVersion(), second.GetResourceVersion())
			assert.Equal(t, first.GetGeneration(), second.GetGeneration())
			assert.Equal(t, before, metric(t, "warmpool_admissions_total", `verdict="patched"`), "the patch is not empty")
		})
	}
	assert.Equal(t, 2, found)
}

// subset checks that all that is sent is live, with lists of the same length.
func subset(t *testing.T, path string, sent, live any) {
	t.Helper()
	switch sent := sent.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		require.True(t, ok, path)
		for key, value := range sent {
			subset(t, path+"."+key, value, fields[key])
		}
	case []any:
		items, ok := live.([]any)
		require.True(t, ok, path)
		require.Len(t, items, len(sent), path)
		for i := range sent {
			subset(t, path, sent[i], items[i])
		}
	default:
		assert.EqualValues(t, sent, live, path)
	}
}

// The placeholders to try: the broken one is refused with every fault, the fixed one comes out as it went in.
func TestPlaceholdersToTry(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	u := newUser(t)
	namespace := u.namespace(t)
	patch := func(name string) error {
		objects, err := decodeFile(filepath.Join(root, "manifests", "try", name))
		require.NoError(t, err)
		require.Len(t, objects, 1)
		objects[0].SetNamespace(namespace)
		content, err := objects[0].MarshalJSON()
		require.NoError(t, err)
		_, err = u.AppsV1().Deployments(namespace).Patch(t.Context(), objects[0].GetName(), types.ApplyPatchType, content, metav1.PatchOptions{FieldManager: "test"})
		return err
	}
	denied(t, patch("placeholder-broken.yaml"),
		cause{antiAffinityField, "app=spaces-overprovisioning"},
		cause{"spec.template.metadata.annotations[karpenter.sh/do-not-disrupt]", `"yes"`},
		cause{"spec.template.spec.containers[0].resources.limits", "pool gpu has accelerators"},
		cause{commandField, "pull-workspace-image"})
	warned(t, u.warnings(t), "placeholder-image: ", "placeholder-rollout: ", "placeholder-qos: ", "placeholder-pull-policy: ")
	require.NoError(t, patch("placeholder-fixed.yaml"))
	assert.Empty(t, u.warnings(t))
}
