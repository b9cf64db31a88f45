package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// twoPools is what the tests below add to.
const twoPools = `
apiVersion: config.warmpool.sh/v1alpha1
kind: WarmPoolConfiguration
pools:
- {name: cpu, nodePools: [cpu-a]}
- {name: gpu, nodePools: [gpu-a], accelerators: ["nvidia.com/*"]}
`

// newEvaluator judges by the configuration and by testdata/cluster.yaml, on 2026-11-29.
func newEvaluator(t *testing.T, configuration string) *policy.Evaluator {
	t.Helper()
	cfg, err := config.Load([]byte(configuration), policy.IDs())
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join("testdata", "cluster.yaml"))
	require.NoError(t, err)
	facts, _, err := manifest.Read([]string{"-"}, strings.NewReader(string(data)))
	require.NoError(t, err)
	return evaluatorOf(t, cfg, facts)
}

func evaluatorOf(t *testing.T, cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot) *policy.Evaluator {
	t.Helper()
	e, err := policy.New(cfg, facts, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	return e
}

// faulty is a placeholder of the pool with a fault for most rules. It asks for a GPU, so that only pool gpu offers it.
func faulty(t *testing.T, pool string) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata: {name: ph, namespace: warm, labels: {warmpool.sh/pool: `+pool+`}}
spec:
  replicas: 2
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: ph}}
  template:
    metadata:
      labels: {app: ph, kueue.x-k8s.io/queue-name: q}
      annotations: {karpenter.sh/do-not-disrupt: "yes", a: b, c: d}
    spec:
      priorityClassName: nowhere
      terminationGracePeriodSeconds: 60
      nodeSelector: {karpenter.sh/nodepool: other, node.kubernetes.io/instance-type: tiny}
      tolerations: [{operator: Exists}, {key: foreign, operator: Exists}]
      initContainers: [{name: pull-workspace-image, image: nb, imagePullPolicy: Always}]
      containers:
      - name: pause
        image: pause
        resources: {requests: {nvidia.com/gpu: 1, amd.com/gpu: 2, cpu: 1}, limits: {nvidia.com/gpu: 2, amd.com/gpu: 1}}
`), &d))
	return &d
}

func workspacePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "workspace-w1-6d4d4-x", Labels: map[string]string{"workspace.jupyter.org/workspace-name": "w1"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"karpenter.sh/nodepool": "other"},
			Containers:   []corev1.Container{{Name: "workspace", Image: "nb"}},
		},
	}
}

func ids(findings []policy.Finding) []string {
	list := make([]string, 0, len(findings))
	for _, f := range findings {
		list = append(list, f.Rule.ID)
	}
	return slices.Compact(list)
}

// actionOf is the action of the rule's first finding; empty without one.
func actionOf(findings []policy.Finding, rule string) config.Action {
	i := slices.IndexFunc(findings, func(f policy.Finding) bool { return f.Rule.ID == rule })
	if i < 0 {
		return ""
	}
	return findings[i].Action
}

func TestActionPrecedence(t *testing.T) {
	tests := []struct{ name, onConflict, rules, pool, want string }{
		{name: "the rule's own", want: "Warn"},
		{name: "onConflict before the rule's own", onConflict: "Deny", want: "Deny"},
		{name: "rules before onConflict", onConflict: "Deny", rules: "Audit", want: "Audit"},
		{name: "the pool's before all", onConflict: "Deny", rules: "Audit", pool: "Warn", want: "Warn"},
		{name: "the pool may turn on what is off", rules: `"Off"`, pool: "Deny", want: "Deny"},
		{name: "off", rules: "Deny", pool: `"Off"`, want: ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			configuration := twoPools
			if test.pool != "" {
				configuration = strings.Replace(configuration, "[cpu-a]", "[cpu-a], rules: {workspace-pool-conflict: "+test.pool+"}", 1)
			}
			if test.onConflict != "" {
				configuration += "workspaces: {onConflict: " + test.onConflict + "}\n"
			}
			if test.rules != "" {
				configuration += "rules: {workspace-pool-conflict: " + test.rules + "}\n"
			}
			e := newEvaluator(t, configuration)
			findings := e.Check(e.Pod(workspacePod(), "team-a"))
			assert.EqualValues(t, test.want, actionOf(findings, "workspace-pool-conflict"))
		})
	}
}

func TestPoolRulesAreForThatPoolOnly(t *testing.T) {
	e := newEvaluator(t, strings.Replace(twoPools, "[cpu-a]", `[cpu-a], rules: {placeholder-grace-period: Deny}`, 1))
	for pool, want := range map[string]config.Action{"cpu": config.Deny, "gpu": config.Warn, "nowhere": config.Warn} {
		assert.Equal(t, want, actionOf(e.Check(e.Placeholder(faulty(t, pool), "warm")), "placeholder-grace-period"), pool)
	}
}

func TestOffNeitherJudgesNorFills(t *testing.T) {
	empty := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"warmpool.sh/pool": "gpu"}}}
	const everything = twoPools + "rules: {placeholder-grace-period: Audit}\n"
	e := newEvaluator(t, everything)
	assert.Contains(t, printPatch(t, e.Mutate(e.Placeholder(empty, "warm"))), "/terminationGracePeriodSeconds", "any other action fills")
	assert.NotEmpty(t, actionOf(e.Check(e.Placeholder(empty, "warm")), "placeholder-grace-period"))

	e = newEvaluator(t, strings.Replace(everything, "Audit", `"Off"`, 1))
	o := e.Placeholder(empty, "warm")
	assert.NotContains(t, printPatch(t, e.Mutate(o)), "/terminationGracePeriodSeconds")
	assert.Empty(t, actionOf(e.Check(o), "placeholder-grace-period"))
	assert.Contains(t, printPatch(t, e.Mutate(e.Placeholder(empty, "warm"))), "/tolerations", "other rules still fill")
}

func TestExemptions(t *testing.T) {
	const rules = "rules: [placeholder-grace-period, workspace-pool-conflict], reason: test"
	tests := []struct {
		name, exemption   string
		deployment, wsPod bool // exempt
	}{
		{"by the Deployment's name", "{" + rules + ", namespace: warm, name: ph}", true, false},
		{"by another name", "{" + rules + ", namespace: warm, name: p}", false, false},
		{"by the Workspace's name", "{" + rules + ", namespace: warm, name: w1}", false, true},
		{"by the pod's own name", "{" + rules + ", namespace: warm, name: workspace-w1-6d4d4-x}", false, true},
		{"the whole namespace", "{" + rules + ", namespace: warm}", true, true},
		{"another namespace", "{" + rules + ", namespace: team-a}", false, false},
		{"another rule", "{rules: [placeholder-qos, workspace-no-pool], reason: test, namespace: warm}", false, false},
		{"on its last day", "{" + rules + `, namespace: warm, until: "2026-11-29"}`, true, true},
		{"expired", "{" + rules + `, namespace: warm, until: "2026-11-28"}`, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := newEvaluator(t, twoPools+"exemptions: ["+test.exemption+"]\n")
			assert.Equal(t, test.deployment, actionOf(e.Check(e.Placeholder(faulty(t, "cpu"), "warm")), "placeholder-grace-period") == "")
			assert.Equal(t, test.wsPod, actionOf(e.Check(e.Pod(workspacePod(), "warm")), "workspace-pool-conflict") == "")
		})
	}
}

func TestExemptionAlsoStopsFilling(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "ph"}}
	e := newEvaluator(t, twoPools+"exemptions: [{rules: [placeholder-grace-period], namespace: warm, name: ph, reason: test}]\n")
	assert.NotContains(t, printPatch(t, e.Mutate(e.Placeholder(d, "warm"))), "terminationGracePeriodSeconds")
	assert.Contains(t, printPatch(t, e.Mutate(e.Placeholder(d, "elsewhere"))), "terminationGracePeriodSeconds")
}

func TestCaps(t *testing.T) {
	duration := faulty(t, "cpu")
	duration.Spec.Template.Annotations["karpenter.sh/do-not-disrupt"] = "1h"
	for configured, want := range map[config.Action]config.Action{config.Deny: config.Warn, config.Warn: config.Warn, config.Audit: config.Audit} {
		e := newEvaluator(t, fmt.Sprintf("%srules: {placeholder-do-not-disrupt: %s}\n", twoPools, configured))
		assert.Equal(t, want, actionOf(e.Check(e.Placeholder(duration, "warm")), "placeholder-do-not-disrupt"), "%s, capped", configured)
		assert.Equal(t, configured, actionOf(e.Check(e.Placeholder(faulty(t, "cpu"), "warm")), "placeholder-do-not-disrupt"), "%s, not capped", configured)
	}
}

// Nothing is denied because facts are missing, and it is said that they are.
func TestUnknownFactsDenyNothing(t *testing.T) {
	cfg, err := config.Load([]byte(twoPools+"rules: {placeholder-priority: Deny, placeholder-tolerations: Deny, placeholder-namespace: Deny}\n"), policy.IDs())
	require.NoError(t, err)
	e := evaluatorOf(t, cfg, &cluster.Snapshot{})
	d := faulty(t, "cpu")
	d.Spec.Template.Spec.Tolerations = nil
	d.Spec.Template.Spec.NodeSelector = nil
	findings := e.Check(e.Placeholder(d, "warm"))
	for _, rule := range []string{"placeholder-priority", "placeholder-tolerations", "placeholder-namespace"} {
		i := slices.IndexFunc(findings, func(f policy.Finding) bool {
			return f.Rule.ID == rule && strings.HasPrefix(f.Error.Detail, "not verified: ")
		})
		if assert.GreaterOrEqual(t, i, 0, rule) {
			assert.Equal(t, config.Warn, findings[i].Action, rule)
			assert.Equal(t, policy.SeverityInfo, findings[i].Severity, rule)
		}
	}
}

// What fits only as long as DaemonSets count as nothing is not said to fit.
func TestUnknownDaemonSetsAreSaid(t *testing.T) {
	cfg, err := config.Load([]byte(twoPools), policy.IDs())
	require.NoError(t, err)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"karpenter.sh/nodepool": "cpu-a"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
	}
	e := evaluatorOf(t, cfg, &cluster.Snapshot{
		Nodes:      cluster.Known(map[string]*corev1.Node{"n1": node}),
		DaemonSets: cluster.Unknown[appsv1.DaemonSet]("forbidden"),
	})
	for request, want := range map[string]string{
		"1":     "not verified: sizing: what DaemonSets take is not known: forbidden",
		"1001m": "cpu 1001m requested, 1 available on nodes without instance type (1m short): 1 allocatable (node n1)",
	} {
		d := faulty(t, "cpu")
		d.Spec.Template.Spec.NodeSelector = nil
		d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)}}
		findings := e.Check(e.Placeholder(d, "warm"))
		i := slices.IndexFunc(findings, func(f policy.Finding) bool { return f.Rule.ID == "placeholder-size" })
		require.GreaterOrEqual(t, i, 0, request)
		assert.Equal(t, want, findings[i].Error.Detail)
	}
}

func TestMalformedPriorityClassIsNotVerified(t *testing.T) {
	cfg, err := config.Load([]byte(twoPools), policy.IDs())
	require.NoError(t, err)
	classes := cluster.Known(map[string]*schedulingv1.PriorityClass{})
	facts := &cluster.Snapshot{PriorityClasses: classes.WithMalformed(map[string]string{"nowhere": "value: not a number"})}
	e := evaluatorOf(t, cfg, facts)
	assert.Equal(t, config.Warn, actionOf(e.Check(e.Placeholder(faulty(t, "cpu"), "warm")), "placeholder-priority"))
}

func TestOrderIsThatOfTheTable(t *testing.T) {
	e := newEvaluator(t, twoPools)
	found := ids(e.Check(e.Placeholder(faulty(t, "gpu"), "warm")))
	assert.Greater(t, len(found), 10, "%v", found)
	inOrder := slices.DeleteFunc(policy.IDs(), func(id string) bool { return !slices.Contains(found, id) })
	assert.Equal(t, inOrder, found)
}

func TestDeterminism(t *testing.T) {
	var first string
	for range 100 {
		e := newEvaluator(t, twoPools)
		var out strings.Builder
		for _, d := range []*appsv1.Deployment{faulty(t, "gpu"), faulty(t, "cpu")} {
			o := e.Placeholder(d, "warm")
			out.WriteString(printPatch(t, e.Mutate(o)) + printFindings(e.Check(o)))
		}
		if first == "" {
			first = out.String()
		}
		require.Equal(t, first, out.String())
	}
}
