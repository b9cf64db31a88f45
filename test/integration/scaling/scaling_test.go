package scaling_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/demand"
)

// One cluster, one story: each part goes on from the one before.
func TestPoolsAreSized(t *testing.T) {
	c := newCluster(t)
	c.configure(t, "{mode: Apply, min: 3, max: 5}", "{mode: Recommend, min: 2}")

	t.Run("applied and recommended", func(t *testing.T) {
		c.has(t, cpu, 3)
		c.tells(t, cpu, "PoolResized", "pool cpu has 3 placeholders, not 1")
		c.tells(t, gpu, "PoolSizeRecommended", "pool gpu should have 2 placeholders, not 1")
		c.metric(t, "warmpool_pool_size_wanted", `pool="gpu"`, 2)
		c.metric(t, "warmpool_pool_size_promised", `pool="cpu"`, 3)
		time.Sleep(40 * time.Second)
		assert.Equal(t, []string{cpu}, c.scaled(t), "nothing is written at rest, nor by recommendation")
	})

	t.Run("what is known is kept", func(t *testing.T) {
		for i := range 3 {
			require.NoError(t, c.admin.Create(t.Context(), workspace(fmt.Sprint("w-", i))))
		}
		require.NoError(t, c.admin.Create(t.Context(), workspace("dry"), client.DryRunAll))
		await.NoProblem(t, limit, "three starts are kept", func() string {
			p := c.known(t)["cpu"]
			if p == nil || p.Recent < 2.5 {
				return fmt.Sprintf("%+v", p)
			}
			return ""
		})
		before := c.known(t)["cpu"].Recent
		assert.LessOrEqual(t, float64(before), 3.01)
		require.NoError(t, c.admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: demand.ConfigMapName}}))
		require.NoError(t, c.admin.Create(t.Context(), workspace("w-after")))
		await.NoProblem(t, limit, "it is written again", func() string {
			if p := c.known(t)["cpu"]; p == nil || p.Recent <= before/2 {
				return fmt.Sprintf("%+v", p)
			}
			return ""
		})
	})

	t.Run("a leader is killed after a write, and another goes on", func(t *testing.T) {
		c.configure(t, "{mode: Apply, min: 4, max: 5}", "{mode: Apply, min: 2, max: 3}")
		c.has(t, cpu, 4)
		require.NoError(t, c.warmpool.Kill())
		c.restart(t)
		c.configure(t, "{mode: Apply, min: 2, max: 2}", "{mode: Apply, min: 3, max: 3}")
		c.has(t, gpu, 3)
		c.has(t, cpu, 2)
		assert.Greater(t, float64(c.known(t)["cpu"].Recent), 1.5, "it knows what the one before knew")
		c.spaced(t)
	})

	t.Run("a newer version of what is known stays", func(t *testing.T) {
		const newer = `{"version":9,"otherwise":true}`
		key := client.ObjectKey{Namespace: install.Namespace, Name: demand.ConfigMapName}
		await.NoError(t, limit, "it is written", func() error {
			var kept corev1.ConfigMap
			if err := c.admin.Get(t.Context(), key, &kept); err != nil {
				return err
			}
			kept.Data["gpu"] = newer
			return c.admin.Update(t.Context(), &kept)
		})
		saves := len(c.writes(t, "configmaps"))
		require.NoError(t, c.admin.Create(t.Context(), workspace("w-newer")))
		await.NoProblem(t, limit, "another write", func() string {
			if len(c.writes(t, "configmaps")) == saves {
				return "none"
			}
			return ""
		})
		var kept corev1.ConfigMap
		require.NoError(t, c.admin.Get(t.Context(), key, &kept))
		assert.Equal(t, newer, kept.Data["gpu"])
	})

	t.Run("somebody else scales", func(t *testing.T) {
		before := len(c.writes(t, "deployments/scale"))
		scale(t, c, cpu, 5)
		c.tells(t, cpu, "PoolHeld", "somebody has set the replicas of "+cpu+" to 5")
		cpa := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: placeholders, Name: "cpa"}}
		cpa.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cpa"}}
		cpa.Spec.Template.Labels = cpa.Spec.Selector.MatchLabels
		cpa.Spec.Template.Spec.Containers = []corev1.Container{{Name: "autoscaler", Image: "registry.k8s.io/cpa/cluster-proportional-autoscaler:v1.10.3", Args: []string{
			"--namespace=" + placeholders, "--configmap=c", "--target=deployment/" + gpu,
		}}}
		cpa.Spec.Template.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		require.NoError(t, c.admin.Create(t.Context(), cpa))
		c.configure(t, "{mode: Apply, min: 2, max: 2}", "{mode: Apply, min: 1, max: 1}")
		c.tells(t, gpu, "PoolHeld", "Deployment "+placeholders+"/cpa is a Cluster Proportional Autoscaler that scales "+gpu)
		time.Sleep(35 * time.Second)
		assert.Len(t, c.writes(t, "deployments/scale"), before, "neither is written")
		assert.Equal(t, int32(5), *c.deployment(t, cpu).Spec.Replicas)
		c.metric(t, "warmpool_pool_held", `pool="gpu",reason="scaler"`, 1)
		require.NoError(t, c.admin.Delete(t.Context(), cpa))
		c.has(t, gpu, 1)
	})
	c.spaced(t)
	log, err := os.ReadFile(c.warmpool.Log)
	require.NoError(t, err)
	for _, bad := range []string{"forbidden", "Forbidden", "panic", "pool not sized", "Event not made"} {
		assert.NotContains(t, string(log), bad)
	}
}

func workspace(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"workspace.jupyter.org/workspace-name": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "registry.example/notebook:1"}}},
	}
}

// scale sets the replicas as kubectl scale does.
func scale(t *testing.T, c *cluster, name string, replicas int) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: placeholders, Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	require.NoError(t, c.admin.Patch(t.Context(), d, patch, client.FieldOwner("somebody")))
}

// known is what is kept of the pools.
func (c *cluster) known(t *testing.T) map[string]*demand.Pool {
	t.Helper()
	var kept corev1.ConfigMap
	err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: demand.ConfigMapName}, &kept)
	require.NoError(t, client.IgnoreNotFound(err))
	state, err := demand.Read(kept.Data, time.Now())
	require.NoError(t, err)
	return state.Pools
}

// restart runs another warmpool, which leads once the lease of the one before is over.
func (c *cluster) restart(t *testing.T) {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	rendered, err := install.Render(filepath.Join(root, "manifests", variant))
	require.NoError(t, err)
	c.warmpool, err = install.Start(context.WithoutCancel(t.Context()), c.ControlPlane, filepath.Join(c.Dir, "warmpool"), rendered, c.warmpool.WebhookPort)
	require.NoError(t, err)
}

func (c *cluster) scaled(t *testing.T) (names []string) {
	t.Helper()
	for _, w := range c.writes(t, "deployments/scale") {
		names = append(names, w.name)
	}
	return names
}

// spaced wants all writes of a scale and of the ConfigMap to have kept their distance.
func (c *cluster) spaced(t *testing.T) {
	t.Helper()
	for resource, least := range map[string]time.Duration{"deployments/scale": 30 * time.Second, "configmaps": 50 * time.Second} {
		last := map[string]time.Time{}
		for _, w := range c.writes(t, resource) {
			if resource == "configmaps" && w.name != demand.ConfigMapName {
				continue
			}
			if before, ok := last[w.name]; ok {
				assert.GreaterOrEqual(t, w.at.Sub(before), least, "%s %s", resource, w.name)
			}
			last[w.name] = w.at
		}
	}
}

// metric waits until a metric has a value.
func (c *cluster) metric(t *testing.T, name, labels string, want float64) {
	t.Helper()
	await.NoProblem(t, limit, name, func() string {
		sum, _, err := install.Metric(t.Context(), c.warmpool.MetricsURL, name, labels)
		if err != nil || sum != want {
			return strings.TrimSpace(fmt.Sprint(sum, " ", err))
		}
		return ""
	})
}
