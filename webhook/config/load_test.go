package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/config"
)

var update = flag.Bool("update", false, "write the messages in testdata/bad anew")

// ruleIDs are the rules of the catalogue.
var ruleIDs = strings.Fields(`
	placeholder-size placeholder-anti-affinity placeholder-pool placeholder-tolerations placeholder-tolerations-excess
	placeholder-priority placeholder-grace-period placeholder-do-not-disrupt placeholder-rollout placeholder-accelerator
	placeholder-qos placeholder-image placeholder-image-tag placeholder-pull-policy placeholder-pull-command
	placeholder-pull-request placeholder-pull-secrets placeholder-sizing-mode placeholder-replicas placeholder-zones
	placeholder-namespace placeholder-budget placeholder-pods placeholder-stuck
	workspace-pool-affinity workspace-tolerations workspace-warm-first workspace-pool-conflict workspace-no-pool
	workspace-size workspace-priority workspace-image workspace-claims workspace-queue
	priorityclass-placeholder nodepool-ready nodepool-label nodepool-consolidation nodepool-limits nodepool-taints
	nodepool-expiry nodepool-capacity-type nodepool-double-buffer cpa-config cpa-bounds cpa-runaway cpa-scope cpa-target
	cpa-rbac cpa-priority template-pool template-image-tag template-idle-shutdown node-taints node-disk-pressure warm-count
	webhook-scope cluster-autoscaler-cutoff`)

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// wantDefaults is what a file that names only its pools stands for.
func wantDefaults(pools ...config.Pool) *config.WarmPoolConfiguration {
	return &config.WarmPoolConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "config.warmpool.sh/v1alpha1", Kind: "WarmPoolConfiguration"},
		Placeholders: config.Placeholders{
			Namespace:         "overprovisioning",
			PriorityClassName: "overprovisioning-placeholder",
		},
		Workspaces: config.Workspaces{
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "workspace.jupyter.org/workspace-name", Operator: "Exists"},
			}},
			OnConflict: "Warn",
		},
		AuditInterval: &metav1.Duration{Duration: 10 * time.Minute},
		Pools:         pools,
	}
}

func TestLoadFull(t *testing.T) {
	want := wantDefaults(
		config.Pool{
			Name: "cpu", NodePools: []string{"spaces-cpu"},
			Templates: []config.TemplateRef{{Namespace: "jupyter-k8s-shared", Name: "cpu"}},
			PrePull:   "Default", WarmFirst: new(true), Autoscaler: "Karpenter", Rules: map[string]config.Action{},
			Sizing: config.Sizing{Mode: "Coexist", Allocatable: corev1.ResourceList{
				"cpu": resource.MustParse("47810m"), "memory": resource.MustParse("193044768Ki"),
			}},
		},
		config.Pool{
			Name: "gpu", NodePools: []string{"spaces-gpu"}, Accelerators: []string{"nvidia.com/*"},
			NodeTaints: []string{"sagemaker.amazonaws.com/node-health-status=Schedulable:NoSchedule"},
			Templates:  []config.TemplateRef{{Namespace: "jupyter-k8s-shared", Name: "gpu"}},
			PrePull:    "Default", WarmFirst: new(true), Autoscaler: "Karpenter",
			Sizing: config.Sizing{Mode: "Exclusive"},
		},
	)
	want.Workspaces.ImageRegistry, want.Workspaces.ImageAliases = new(""), map[string]string{}
	want.Rules = map[string]config.Action{"placeholder-priority": "Deny"}
	want.Exemptions = []config.Exemption{{
		Rules: []string{"placeholder-replicas"}, Namespace: "overprovisioning", Name: "canary",
		Reason: "single-node test pool", Until: "2027-01-31",
	}}

	got, err := config.Load(read(t, "testdata/full.yaml"), ruleIDs)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestLoadMinimal(t *testing.T) {
	got, err := config.Load(read(t, "testdata/minimal.json"), nil)
	require.NoError(t, err)
	want := wantDefaults(config.Pool{
		Name: "cpu", NodePools: []string{"spaces-cpu"}, PrePull: "Default", WarmFirst: new(true), Autoscaler: "Karpenter",
		Sizing: config.Sizing{Mode: "Coexist"},
	})
	assert.Equal(t, want, got)

	config.SetDefaults(got)
	assert.Equal(t, want, got, "a second SetDefaults changes nothing")
}

const header = "apiVersion: config.warmpool.sh/v1alpha1\nkind: WarmPoolConfiguration\n"

// TestLoadAccepts holds what must not be refused although it looks odd.
func TestLoadAccepts(t *testing.T) {
	for name, data := range map[string]string{
		"chosen values stay":    header + "auditInterval: 1h\npools: [{name: a, nodePools: [a], warmFirst: no, autoscaler: None, prePull: Allowed}]",
		"empty values":          header + "workspaces:\nrules: ~\nexemptions: []\npools: [{name: a, nodePools: [a], sizing: }]",
		"markers and comments":  "# ours\n---\n---\n" + header + "pools: [{name: a, nodePools: [a]}]\n---\n# end\n",
		"aliases":               header + "pools: [{name: a, nodePools: [a], templates: &t [{namespace: n, name: t}]}, {name: b, nodePools: [b], templates: *t}]",
		"empty label value":     header + "pools: [{name: a, nodeLabel: {key: node-role.kubernetes.io/notebooks, values: ['']}}]",
		"one label, two values": header + "pools: [{name: a, nodeLabel: {key: p, values: [a]}}, {name: b, nodeLabel: {key: p, values: [b]}}]",
		"two values of a taint": header + "pools: [{name: a, nodePools: [a], nodeTaints: ['k=a:NoSchedule', 'k=b:NoSchedule', 'k:NoExecute']}]",
		"namespace selector":    header + "pools: [{name: a, nodePools: [a], namespaceSelector: {matchLabels: {team: a}}}]",
		"sizes": header + "pools: [{name: a, nodePools: [a], size: }, {name: b, nodePools: [b], size: {mode: Apply, min: 0, max: 3, timeZone: Europe/Berlin, events: [" +
			`{name: c, at: "2027-01-12T09:00", for: 30m, starts: 200}, {name: d, at: "2027-01-12T09:30", for: 30m, starts: 1}, {name: x, from: 2026-12-24, to: 2027-01-02, starts: 0}]}}, ` +
			"{name: c, nodePools: [c], size: {cost: {waitingHour: 60, nodeHour: 5.4}}}]",
		"windows line ends": strings.ReplaceAll(header+"pools:\n- name: a\n  nodePools:\n  - a\n", "\n", "\r\n"),
		"byte order mark":   "\ufeff" + header + "pools: [{name: a, nodePools: [a]}]",
		"expired exemption": header + "pools: [{name: a, nodePools: [a]}]\nexemptions: [{rules: [cpa-rbac], namespace: n, reason: r, until: 2001-01-01}]",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load([]byte(data), ruleIDs)
			require.NoError(t, err)
			roundTrip(t, c)
			if name == "chosen values stay" {
				assert.Equal(t, time.Hour, c.AuditInterval.Duration)
				assert.Equal(t, config.Pool{
					Name: "a", NodePools: []string{"a"}, WarmFirst: new(false), Autoscaler: "None", PrePull: "Allowed",
					Sizing: config.Sizing{Mode: "Coexist"},
				}, c.Pools[0])
			}
		})
	}
}

// TestLoadRefuses compares the whole message of each file of testdata/bad with the .txt beside it.
func TestLoadRefuses(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*")
	require.NoError(t, err)
	bad := map[string]bool{}
	for _, file := range files {
		if filepath.Ext(file) == ".txt" {
			continue
		}
		golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".txt"
		bad[golden] = true
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := config.Load(read(t, file), ruleIDs)
			require.Error(t, err)
			assert.Nil(t, c)
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
			}
			assert.Equal(t, string(read(t, golden)), err.Error()+"\n")
		})
	}
	for _, file := range files {
		assert.True(t, filepath.Ext(file) != ".txt" || bad[file], "%s belongs to no file", file)
	}
}

func TestLoadSize(t *testing.T) {
	data := []byte(header + "pools: [{name: a, nodePools: [a]}]\n#")
	data = append(data, strings.Repeat("x", config.MaxSize-len(data))...)
	_, err := config.Load(data, nil)
	require.NoError(t, err)
	_, err = config.Load(append(data, 'x'), nil)
	assert.EqualError(t, err, "the configuration is larger than 1 MiB (1048576 bytes); remove what does not belong to it")
}

// roundTrip wants a configuration that loads to load again from what it is written as.
func roundTrip(t *testing.T, c *config.WarmPoolConfiguration) {
	t.Helper()
	assert.Empty(t, config.Validate(c, ruleIDs))
	data, err := yaml.Marshal(c)
	require.NoError(t, err)
	again, err := config.Load(data, ruleIDs)
	require.NoError(t, err, "%s", data)
	assert.True(t, equality.Semantic.DeepEqual(c, again), "%s", data)
}

func FuzzLoad(f *testing.F) {
	f.Add(read(f, "testdata/full.yaml"))
	f.Add(read(f, "testdata/minimal.json"))
	bad, err := filepath.Glob("testdata/bad/*")
	require.NoError(f, err)
	for _, file := range bad {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Load(data, ruleIDs)
		if err != nil {
			assert.Nil(t, c)
			assert.NotEmpty(t, err.Error())
			return
		}
		roundTrip(t, c)
	})
}
