package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/config"
)

// TestValidate judges configurations that no file gave; testdata/bad has the messages of the other faults.
func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *config.WarmPoolConfiguration)
		want   []string
	}{
		"good": {change: func(*config.WarmPoolConfiguration) {}},
		"no audit interval, no selector": {change: func(c *config.WarmPoolConfiguration) {
			c.AuditInterval, c.Workspaces.Selector = nil, nil
		}},
		"the shortest audit interval": {change: func(c *config.WarmPoolConfiguration) {
			c.AuditInterval.Duration = 10 * time.Second
		}},
		"too short an audit interval": {
			change: func(c *config.WarmPoolConfiguration) { c.AuditInterval.Duration = 10*time.Second - 1 },
			want: []string{
				`auditInterval: Invalid value: "9.999999999s": must be at least 10s, so that audits do not burden the API server`,
			},
		},
		"no defaults": {
			change: func(c *config.WarmPoolConfiguration) {
				*c = config.WarmPoolConfiguration{Pools: []config.Pool{{Name: "a", NodePools: []string{"a"}}}}
			},
			want: []string{
				`placeholders.namespace: Required value: must not be empty`,
				`placeholders.priorityClassName: Required value: must not be empty`,
				`workspaces.onConflict: Unsupported value: "": supported values: "Warn", "Deny"`,
				`pools[0].prePull: Unsupported value: "": supported values: "Default", "Allowed"`,
				`pools[0].autoscaler: Unsupported value: "": supported values: "Karpenter", "ClusterAutoscaler", "None"`,
				`pools[0].sizing.mode: Unsupported value: "": supported values: "Coexist", "Exclusive"`,
			},
		},
		"a NodePool's name that is too long for its label": {
			change: func(c *config.WarmPoolConfiguration) {
				c.Pools[0].NodePools = []string{strings.Repeat("a", 63), strings.Repeat("b", 64)}
			},
			want: []string{`pools[0].nodePools[1]: Invalid value: "` + strings.Repeat("b", 64) +
				`": must be at most 63 letters, digits, -, _ and ., with a letter or digit at both ends`},
		},
		"both kinds of nodes, the same ones": {
			change: func(c *config.WarmPoolConfiguration) {
				c.Pools[0].NodeLabel = &config.NodeLabel{Key: "karpenter.sh/nodepool", Values: []string{"spaces-cpu"}}
			},
			want: []string{`pools[0].nodeLabel: Forbidden: the pool has nodePools too; keep one of nodePools and nodeLabel`},
		},
		"errors of labels in one order": {
			change: func(c *config.WarmPoolConfiguration) {
				c.Workspaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", 64), "c": "-", "b": strings.Repeat("y", 64)}}
			},
			want: []string{
				`workspaces.selector.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`workspaces.selector.matchLabels: Invalid value: "` + strings.Repeat("x", 64) + `": must be no more than 63 bytes`,
				`workspaces.selector.matchLabels: Invalid value: "` + strings.Repeat("y", 64) + `": must be no more than 63 bytes`,
			},
		},
		"whose namespaces": {
			change: func(c *config.WarmPoolConfiguration) {
				c.Pools[0].NamespaceSelector = &metav1.LabelSelector{}
				c.Pools[1].NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "team", Operator: "Is"},
				}}
			},
			want: []string{
				`pools[0].namespaceSelector: Invalid value: {}: an empty selector lets every namespace use the pool; leave it out to say so`,
				`pools[1].namespaceSelector.matchExpressions[0].operator: Unsupported value: "Is": supported values: "In", "NotIn", "Exists", "DoesNotExist"`,
			},
		},
		"what nodes offer": {
			change: func(c *config.WarmPoolConfiguration) {
				c.Pools[0].Sizing.Allocatable = corev1.ResourceList{
					"nvidia.com/gpu": resource.MustParse("8"), "hugepages-1Gi": resource.MustParse("1Gi"), "pods": resource.MustParse("-1"),
				}
			},
			want: []string{`pools[0].sizing.allocatable[pods]: Invalid value: "-1": must be greater than 0; leave out what the nodes do not have`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load(read(t, "testdata/full.yaml"), ruleIDs)
			require.NoError(t, err)
			test.change(c)
			var got []string
			for _, e := range config.Validate(c, ruleIDs) {
				got = append(got, e.Error())
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestParseTaint(t *testing.T) {
	const keyForm = ` must be a label key, such as example.com/pool: a DNS name and / (both optional), then at most 63 letters, digits, -, _ and .`
	for s, test := range map[string]struct {
		want corev1.Taint
		err  string
	}{
		"dedicated=notebooks:NoSchedule": {want: corev1.Taint{Key: "dedicated", Value: "notebooks", Effect: "NoSchedule"}},
		"nvidia.com/gpu:NoExecute":       {want: corev1.Taint{Key: "nvidia.com/gpu", Effect: "NoExecute"}},
		"k=:PreferNoSchedule":            {want: corev1.Taint{Key: "k", Effect: "PreferNoSchedule"}},
		"k=v":                            {err: "has no effect; write KEY=VALUE:EFFECT or KEY:EFFECT, for example dedicated=notebooks:NoSchedule"},
		"k=v:":                           {err: `effect "" must be NoSchedule or NoExecute`},
		"k=v:NoExec":                     {err: `effect "NoExec" must be NoSchedule or NoExecute (did you mean "NoExecute"?)`},
		"k=v:NoSchedule:NoExecute":       {err: `effect "NoSchedule:NoExecute" must be NoSchedule or NoExecute`},
		":NoSchedule":                    {err: `key ""` + keyForm},
		"a/b/c:NoSchedule":               {err: `key "a/b/c"` + keyForm},
		"k=v=w:NoSchedule":               {err: `value "v=w" must be at most 63 letters, digits, -, _ and ., with a letter or digit at both ends`},
	} {
		t.Run(s, func(t *testing.T) {
			got, err := config.ParseTaint(s)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
			assert.Equal(t, test.want, got)
		})
	}
}
