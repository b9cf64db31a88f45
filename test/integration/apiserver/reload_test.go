package apiserver_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/config"
)

// configure puts a changed configuration in force until the test ends.
func configure(t *testing.T, change func(*config.WarmPoolConfiguration)) {
	t.Helper()
	content, err := yaml.Marshal(&baseConfiguration)
	require.NoError(t, err)
	changed := fromYAML[config.WarmPoolConfiguration](t, string(content))
	change(&changed)
	t.Cleanup(func() { apply(t, &baseConfiguration) })
	apply(t, &changed)
}

func apply(t *testing.T, cfg *config.WarmPoolConfiguration) {
	t.Helper()
	before := reloads(t, "applied")
	require.NoError(t, writeConfiguration(cfg))
	eventually(t, "the configuration is in force", func() bool { return reloads(t, "applied") > before })
}

func reloads(t *testing.T, result string) float64 {
	t.Helper()
	return metric(t, "warmpool_config_reloads_total", `result="`+result+`"`)
}

func TestReload(t *testing.T) {
	u := newUser(t)
	tagged := func(t *testing.T, name string) *appsv1.Deployment {
		t.Helper()
		d := complete(t)
		d.Name = name
		d.Spec.Template.Spec.InitContainers[0].Image = "example.com/nb:latest"
		d.Spec.Template.Spec.InitContainers[0].ImagePullPolicy = "IfNotPresent"
		return d
	}
	const field = "spec.template.spec.initContainers[0].image"
	t.Run("as it was", func(t *testing.T) {
		o := u.create(t, u.namespace(t), tagged(t, "ph"))
		o.same(t)
		warned(t, o.warnings, "placeholder-image-tag: ")
	})
	t.Run("a rule denies", func(t *testing.T) {
		configure(t, func(c *config.WarmPoolConfiguration) {
			c.Rules = map[string]config.Action{"placeholder-image-tag": config.Deny}
		})
		denied(t, u.create(t, u.namespace(t), tagged(t, "ph")).err, cause{field, "latest"})
	})
	t.Run("a rule denies, but not in this pool", func(t *testing.T) {
		configure(t, func(c *config.WarmPoolConfiguration) {
			c.Rules = map[string]config.Action{"placeholder-image-tag": config.Deny, "placeholder-elsewhere": config.Off}
			i := slices.IndexFunc(c.Pools, func(p config.Pool) bool { return p.Name == "gpu-a" })
			c.Pools[i].Rules = map[string]config.Action{"placeholder-image-tag": config.Audit}
		})
		o := u.create(t, u.namespace(t), tagged(t, "ph"))
		o.same(t)
		assert.Empty(t, o.warnings)
	})
	t.Run("a rule denies, but not this one", func(t *testing.T) {
		namespace := u.namespace(t)
		configure(t, func(c *config.WarmPoolConfiguration) {
			c.Rules = map[string]config.Action{"placeholder-image-tag": config.Deny}
			c.Exemptions = []config.Exemption{{Rules: []string{"placeholder-image-tag"}, Namespace: namespace, Name: "canary", Reason: "test"}}
		})
		require.NoError(t, u.create(t, namespace, tagged(t, "canary")).err)
		denied(t, u.create(t, namespace, tagged(t, "other")).err, cause{field, "latest"})
	})
	t.Run("a rule that is off neither judges nor fills", func(t *testing.T) {
		configure(t, func(c *config.WarmPoolConfiguration) {
			c.Rules = map[string]config.Action{"workspace-tolerations": config.Off, "placeholder-grace-period": config.Off, "placeholder-pull-command": config.Off, "placeholder-elsewhere": config.Off}
		})
		o := u.create(t, u.namespace(t), workspacePod("gpu-a", gpu))
		require.NoError(t, o.err)
		assert.NotContains(t, asJSON(t, o.got), "nvidia.com/gpu\",\"operator")
		d := complete(t)
		d.Spec.Template.Spec.TerminationGracePeriodSeconds = nil
		d.Spec.Template.Spec.InitContainers[0].Command = nil
		o = u.create(t, u.namespace(t), d)
		o.same(t)
		assert.Empty(t, o.warnings)
	})
	t.Run("another pool", func(t *testing.T) {
		configure(t, func(c *config.WarmPoolConfiguration) {
			c.Pools = append(c.Pools, config.Pool{Name: "labelled", NodeLabel: &config.NodeLabel{Key: "example.com/pool", Values: []string{"a", "b"}},
				NodeTaints: []string{"sagemaker.amazonaws.com/node-health-status=Schedulable:NoSchedule"}})
		})
		o := u.create(t, u.namespace(t), workspacePod("labelled"))
		require.NoError(t, o.err)
		assert.Contains(t, asJSON(t, o.got), `"matchExpressions":[{"key":"example.com/pool","operator":"In","values":["a","b"]}]`)
		assert.Contains(t, asJSON(t, o.got), `{"key":"sagemaker.amazonaws.com/node-health-status","operator":"Equal","value":"Schedulable","effect":"NoSchedule"}`)
	})
}

// Where the configuration says so, a Workspace pod that excludes its own pool is refused.
func TestConflictsDenied(t *testing.T) {
	u := newUser(t)
	configure(t, func(c *config.WarmPoolConfiguration) { c.Workspaces.OnConflict = config.Deny })
	pod := workspacePod("gpu-a", gpu)
	pod.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "cpu-a"}
	err := u.create(t, u.namespace(t), pod).err
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, `admission webhook "pods.warmpool.sh" denied the request: Pod`)
	require.ErrorContains(t, err, "spec.nodeSelector")
	require.ErrorContains(t, err, "excludes pool gpu-a")
	require.NoError(t, u.create(t, u.namespace(t), workspacePod("gpu-a", gpu)).err)
}

// A bad file is refused, loudly, and changes nothing; so is one that is gone.
func TestReloadRefused(t *testing.T) {
	u := newUser(t)
	t.Cleanup(func() { apply(t, &baseConfiguration) })
	good, err := os.ReadFile(warmpool.ConfigFile)
	require.NoError(t, err)
	for name, content := range map[string]string{
		"no YAML":                   "pools: [",
		"empty":                     "",
		"unknown field":             string(good) + "\npoools: []\n",
		"unknown rule":              string(good) + "\nrules: {placeholder-anti-afinity: Warn}\n",
		"two pools of one NodePool": strings.Replace(string(good), "- evicting", "- gpu-a", 1),
		"another version":           strings.Replace(string(good), "/v1alpha1", "/v9", 1),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, string(good), content)
			refused, applied := reloads(t, "refused"), reloads(t, "applied")
			require.NoError(t, os.WriteFile(warmpool.ConfigFile, []byte(content), 0o600))
			eventually(t, "the file is refused", func() bool { return reloads(t, "refused") > refused })
			assert.Equal(t, applied, reloads(t, "applied"))
			o := u.create(t, u.namespace(t), workspacePod("teams"))
			require.NoError(t, o.err)
			assert.Contains(t, asJSON(t, o.got), `"values":["teams"]`)
			assert.NoError(t, install.Get(t.Context(), warmpool.HealthURL+"/readyz"))
		})
	}
	t.Run("gone", func(t *testing.T) {
		refused := reloads(t, "refused")
		require.NoError(t, os.Remove(warmpool.ConfigFile))
		eventually(t, "that it is gone is told", func() bool { return reloads(t, "refused") > refused })
		require.NoError(t, u.create(t, u.namespace(t), workspacePod("teams")).err)
	})
	eventually(t, "an Event tells of it", func() bool {
		events, err := u.EventsV1().Events(install.Namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, e := range events.Items {
			if e.Reason == "ConfigurationRefused" && e.Type == "Warning" && strings.Contains(e.Note, "the old configuration stays in force") {
				return true
			}
		}
		return false
	})
}
