// Package auditing_test proves the audits of a running warmpool on a real API server, with the rights and the manifests
// that ship.
package auditing_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

const (
	placeholders = "overprovisioning"
	team         = "team-a"
)

var (
	openReport   = schema.GroupVersionKind{Group: "openreports.io", Version: "v1alpha1", Kind: "Report"}
	policyReport = schema.GroupVersionKind{Group: "wgpolicyk8s.io", Version: "v1alpha2", Kind: "PolicyReport"}
)

func TestAudits(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{AuditPolicy: auditPolicy, Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	c := &cluster{ControlPlane: plane}
	c.admin, err = client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	c.warmpool, err = install.Up(t.Context(), plane, install.Options{})
	require.NoError(t, err)
	c.hurry(t)
	c.breaks(t)

	told := c.findsAndTells(t)
	require.NoError(t, plane.Apply(t.Context(), slices.Concat(openReports(t), decode(t, filepath.Join("testdata", "policyreports.yaml")))...))
	c.changesLeader(t)
	report := c.reports(t)
	assert.Len(t, c.events(t, "CpaConfig"), told, "the new leader does not repeat them")
	c.isQuiet(t, report.GetResourceVersion())
	c.fixes(t, report.GetUID())
	c.losesCRDs(t)
	for _, r := range c.requests(t) {
		assert.NotEqual(t, http.StatusForbidden, r.Status.Code, "%s %s", r.Verb, r.RequestURI)
	}
	c.isNotBlinded(t)
}

// hurry has audits run as often as the configuration may ask for.
func (c *cluster) hurry(t *testing.T) {
	t.Helper()
	configuration, err := os.ReadFile(c.warmpool.ConfigFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.warmpool.ConfigFile, append([]byte("auditInterval: 10s\n"), configuration...), 0o600))
}

const parameters = "spaces-overprovision-cpa-config-cpu"

func (c *cluster) setParameters(t *testing.T, linear string) {
	t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: placeholders, Name: parameters}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"linear":"`+linear+`"}}`))
	require.NoError(t, c.admin.Patch(t.Context(), configMap, patch))
}

func workspace() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "elsewhere", Labels: map[string]string{"workspace.jupyter.org/workspace-name": "elsewhere"}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), NodeSelector: map[string]string{"karpenter.sh/nodepool": "another"},
			Containers: []corev1.Container{{Name: "workspace", Image: "registry.example/notebook:1"}},
		},
	}
}

// breaks what no admission looks at, or only warns of: CPA's parameters, and a Workspace that stays out of its pool.
func (c *cluster) breaks(t *testing.T) {
	t.Helper()
	c.setParameters(t, "nonsense")
	require.NoError(t, c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}))
	require.NoError(t, c.admin.Create(t.Context(), workspace()))
}

// findsAndTells waits for the metric and the Events, of which it gives the number.
func (c *cluster) findsAndTells(t *testing.T) int {
	t.Helper()
	await.NoProblem(t, limit, "the findings", func() string {
		broken, _ := c.metric(t, "warmpool_audit_findings", `rule="cpa-config"`, `severity="error"`, `pool="cpu"`)
		outside, _ := c.metric(t, "warmpool_audit_findings", `rule="workspace-pool-conflict"`)
		if broken != 1 || outside != 1 || len(c.events(t, "CpaConfig")) == 0 {
			return "not found, or not told"
		}
		return ""
	})
	since, _ := c.metric(t, "warmpool_audit_last_success_timestamp_seconds")
	assert.NotZero(t, since)
	_, unverified := c.metric(t, "warmpool_audit_findings", `rule="cpa-rbac"`, `severity="info"`)
	assert.True(t, unverified, "roles are not read, and it is said")
	events := c.events(t, "CpaConfig")
	require.Len(t, events, 1)
	assert.Equal(t, "ConfigMap", events[0].Regarding.Kind)
	assert.Equal(t, parameters, events[0].Regarding.Name)
	assert.NotEmpty(t, events[0].Regarding.UID)
	assert.Equal(t, "Audit", events[0].Action)
	return len(events)
}

// changesLeader ends the replica that leads, after another one has started.
func (c *cluster) changesLeader(t *testing.T) {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	shipped, err := install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	second, err := install.Start(t.Context(), c.ControlPlane, filepath.Join(c.Dir, "warmpool"), shipped, port)
	require.NoError(t, err)
	first := c.warmpool
	c.warmpool = second
	c.hurry(t)
	_, found := c.metric(t, "warmpool_audit_findings")
	assert.False(t, found, "who does not lead does not audit")
	require.NoError(t, first.Stop())
	c.audited(t, 1)
	await.NoProblem(t, limit, "the new leader asks for the Event that is there", func() string {
		if !slices.ContainsFunc(c.requests(t), func(r request) bool { return r.Verb == "create" && r.Status.Code == http.StatusConflict }) {
			return "no request was answered by 409"
		}
		return ""
	})
}

// reports waits for the report objects, which stand in one API only.
func (c *cluster) reports(t *testing.T) (report interface {
	GetResourceVersion() string
	GetUID() types.UID
}) {
	t.Helper()
	await.NoProblem(t, limit, "the reports", func() string {
		of := c.report(t, openReport, placeholders)
		if rules := rulesIn(of); !strings.Contains(rules, "cpa-config") {
			return "the report of the placeholders has " + rules
		}
		if rules := rulesIn(c.report(t, openReport, team)); !strings.Contains(rules, "workspace-pool-conflict") {
			return "the report of the team has " + rules
		}
		report = of
		return ""
	})
	assert.Nil(t, c.report(t, policyReport, placeholders))
	return report
}

// isQuiet checks that an audit that finds the same writes nothing, and asks little.
func (c *cluster) isQuiet(t *testing.T, version string) {
	t.Helper()
	before := len(c.requests(t))
	c.audited(t, 1)
	requests := c.requests(t)[before:]
	assert.Equal(t, version, c.report(t, openReport, placeholders).GetResourceVersion(), "nothing new, nothing written")
	assert.NotEmpty(t, requests)
	assert.Less(t, len(requests), 60, "one audit of a small cluster, discovery included")
	for _, r := range requests {
		assert.Contains(t, []string{"get", "list"}, r.Verb, r.RequestURI)
		assert.NotContains(t, r.RequestURI, "secrets")
	}
	t.Logf("%d requests for an audit", len(requests))
}

// fixes waits until nothing of what is fixed is told any more.
func (c *cluster) fixes(t *testing.T, uid types.UID) {
	t.Helper()
	c.setParameters(t, `{\"nodesPerReplica\": 4, \"min\": 2, \"max\": 5}`)
	require.NoError(t, c.admin.Delete(t.Context(), workspace(), client.GracePeriodSeconds(0)))
	await.NoProblem(t, limit, "the findings are gone", func() string {
		if _, found := c.metric(t, "warmpool_audit_findings", `rule="cpa-config"`, `severity="error"`); found {
			return "the metric has the finding"
		}
		if c.report(t, openReport, team) != nil {
			return "the team has a report"
		}
		report := c.report(t, openReport, placeholders)
		if rules := rulesIn(report); strings.Contains(rules, "cpa-config") || report == nil || report.GetUID() != uid {
			return "the report is another one, or has " + rules
		}
		return ""
	})
}

// losesCRDs takes the API away that reports are written to; the other one gets them.
func (c *cluster) losesCRDs(t *testing.T) {
	t.Helper()
	for _, crd := range openReports(t) {
		require.NoError(t, c.admin.Delete(t.Context(), crd))
	}
	await.NoProblem(t, limit, "the reports in the other API", func() string {
		if rules := rulesIn(c.report(t, policyReport, placeholders)); !strings.Contains(rules, "cpa-rbac") {
			return "the report of the placeholders has " + rules
		}
		return ""
	})
	failed, _ := c.metric(t, "warmpool_audits_total", `result="error"`)
	assert.LessOrEqual(t, failed, 1.0, "an audit while the CRDs go may fail, the next one not")
}

// isNotBlinded has a team make what looks like CPAs and placeholders, in its own namespace. Audits then see as much of the
// others as before.
func (c *cluster) isNotBlinded(t *testing.T) {
	t.Helper()
	failed, _ := c.metric(t, "warmpool_audits_total", `result="error"`)
	unverified, _ := c.metric(t, "warmpool_audit_findings", `rule="cpa-`, `severity="info"`, `pool="cpu"`)
	// Made before warmpool was: the webhooks call the replica that has stopped.
	require.NoError(t, c.admin.Delete(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool"}}))
	require.NoError(t, c.admin.Delete(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool"}}))
	require.NoError(t, c.Apply(t.Context(), decode(t, filepath.Join("testdata", "blinding.yaml"))...))
	c.setParameters(t, "nonsense")
	await.NoProblem(t, limit, "the finding about CPA's parameters", func() string {
		if broken, _ := c.metric(t, "warmpool_audit_findings", `rule="cpa-config"`, `severity="error"`, `pool="cpu"`); broken != 1 {
			return "not found"
		}
		return ""
	})
	c.audited(t, 1)
	now, _ := c.metric(t, "warmpool_audits_total", `result="error"`)
	assert.Equal(t, failed, now, "no audit fails for what a team names")
	stillUnverified, _ := c.metric(t, "warmpool_audit_findings", `rule="cpa-`, `severity="info"`, `pool="cpu"`)
	assert.Equal(t, unverified, stillUnverified, "of the pool's own CPA all is verified that was")
	said, _ := c.metric(t, "warmpool_audit_findings", `rule="placeholder-budget"`, `severity="info"`)
	assert.Equal(t, 1.0, said, "of the team's placeholder it is not known which budgets there are, and it is said")
	log, err := os.ReadFile(c.warmpool.Log)
	require.NoError(t, err)
	assert.NotContains(t, string(log), "hunter2", "no argument of a look-alike is logged")
	for _, r := range c.requests(t) {
		assert.NotContains(t, r.RequestURI, "hunter2")
	}
}
