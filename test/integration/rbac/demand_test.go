package rbac_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/install"
)

// What sizing by demand needs is what it has: each placeholder's scale by name, and its ConfigMap.
func TestRightsToSizePools(t *testing.T) {
	t.Parallel()
	root, err := install.Root()
	require.NoError(t, err)
	binary, err := install.Build(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	c := newCluster(t, filepath.Join("..", "variants", "demand"), binary)
	for _, name := range []string{"spaces-placeholder-cpu", "spaces-placeholder-gpu"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "overprovisioning", Name: name}}
		many := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`)) // more than max
		require.NoError(t, c.admin.Patch(t.Context(), d, many))
	}
	c.askedFor(t, "get of configmaps warmpool-demand")
	c.askedFor(t, "list of horizontalpodautoscalers.autoscaling")
	c.askedFor(t, "patch of deployments/scale.apps spaces-placeholder-cpu")
	c.askedFor(t, "patch of deployments/scale.apps spaces-placeholder-gpu")
	configMap := &corev1.ConfigMap{}
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: "warmpool-demand"}, configMap))
	assert.NotEmpty(t, configMap.Data)
	allowed, forbidden, err := asked(c.Dir)
	require.NoError(t, err)
	assert.Empty(t, forbidden)
	own := slices.DeleteFunc(slices.Clone(c.grants), func(g grant) bool { return !strings.Contains(g.role, "components/demand") })
	require.NotEmpty(t, own)
	assert.Empty(t, tooMuch(own, allowed))
}
