package apiserver_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

// A user who may list little, and one who may list nothing.
const auditedObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: audited}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: auditor, namespace: audited}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: auditor}
rules:
- {apiGroups: ["", apps, karpenter.sh, scheduling.k8s.io], resources: [nodes, namespaces, pods, deployments, nodepools, priorityclasses], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: auditor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: auditor}
subjects: [{kind: ServiceAccount, name: auditor, namespace: audited}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: nobody, namespace: audited}
`

type auditReport struct {
	Summary  map[string]int
	Findings []map[string]string
}

// The command line audits a live cluster as the user that the kubeconfig names.
func TestAuditLive(t *testing.T) {
	binary := buildWarmpool(t)
	objects, err := decodeText(auditedObjects)
	require.NoError(t, err)
	require.NoError(t, cp.Apply(t.Context(), objects...))

	full := runWarmpool(t, binary, "audit", "--kubeconfig", cp.Kubeconfig, "-o", "json", "--fail-on", "none")
	require.Zero(t, full.code, full.errOut)
	assert.NotContains(t, full.errOut, "may not")
	assert.NotContains(t, full.errOut, "inferred", "the configuration is the ConfigMap of the cluster")
	var report auditReport
	require.NoError(t, json.Unmarshal([]byte(full.out), &report))
	assert.NotZero(t, report.Summary["objects"], "the shipped placeholders")
	assert.Len(t, report.Findings, report.Summary["error"]+report.Summary["warning"]+report.Summary["info"])

	t.Run("exit code", func(t *testing.T) {
		want := 0
		if report.Summary["error"]+report.Summary["warning"] > 0 {
			want = 1
		}
		got := runWarmpool(t, binary, "audit", "--kubeconfig", cp.Kubeconfig, "--fail-on", "warning")
		assert.Equal(t, want, got.code, got.errOut)
	})
	t.Run("a user who may list little", func(t *testing.T) {
		kubeconfig, err := cp.ServiceAccountKubeconfig(t.Context(), "audited", "auditor")
		require.NoError(t, err)
		got := runWarmpool(t, binary, "audit", "--kubeconfig", kubeconfig, "--config", warmpool.ConfigFile, "--fail-on", "none")
		assert.Zero(t, got.code, got.errOut)
		assert.Contains(t, oneLine(got.out), "* this user may not list daemonsets.apps")
		assert.Contains(t, oneLine(got.out), "* this user may not list poddisruptionbudgets.policy")
		assert.Contains(t, got.out, "objects judged")
	})
	t.Run("a user who may list nothing", func(t *testing.T) {
		kubeconfig, err := cp.ServiceAccountKubeconfig(t.Context(), "audited", "nobody")
		require.NoError(t, err)
		got := runWarmpool(t, binary, "audit", "--kubeconfig", kubeconfig, "--config", warmpool.ConfigFile)
		assert.Equal(t, 2, got.code)
		assert.Empty(t, got.out)
		assert.Contains(t, got.errOut, "nothing could be audited: this user may not list nodes")
	})
	t.Run("kubectl takes the reports", func(t *testing.T) {
		applyReportCRDs(t)
		reports := runWarmpool(t, binary, "audit", "--kubeconfig", cp.Kubeconfig, "--fail-on", "none", "-o", "openreports")
		require.Zero(t, reports.code, reports.errOut)
		_, errOut, err := cp.Kubectl(t.Context(), reports.out, "apply", "--validate=strict", "-f", "-")
		require.NoError(t, err, errOut)
		out, errOut, err := cp.Kubectl(t.Context(), "", "get", "clusterreports.openreports.io", "warmpool", "-o", "jsonpath={.source}")
		require.NoError(t, err, errOut)
		assert.Equal(t, "warmpool", out)
	})
}

// auditsNothing audits a cluster that has no warm pool.
func auditsNothing(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	got := runWarmpool(t, buildWarmpool(t), "audit", "--kubeconfig", plane.Kubeconfig)
	assert.Equal(t, 2, got.code, got.errOut)
	assert.Empty(t, got.out)
	assert.Contains(t, got.errOut, "nothing to audit: no configuration, and no placeholder Deployment")
}

// auditsWithoutKarpenter audits warm pools whose NodePools no one knows: not verified, and no fault.
func auditsWithoutKarpenter(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	got := runWarmpool(t, buildWarmpool(t), "audit", "--kubeconfig", plane.Kubeconfig, "-o", "json", "--fail-on", "none")
	require.Zero(t, got.code, got.errOut)
	assert.NotContains(t, got.errOut, "cannot")
	var report auditReport
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	said := 0
	for _, finding := range report.Findings {
		if strings.Contains(finding["message"], "no NodePool CRD (karpenter.sh) in the cluster") {
			said++
			assert.Equal(t, "info", finding["severity"], "%v", finding)
			assert.Contains(t, finding["message"], "not verified: ")
		}
		assert.False(t, strings.HasPrefix(finding["rule"], "nodepool-") && finding["severity"] != "info", "%v", finding)
	}
	assert.NotZero(t, said)
}

func buildWarmpool(t *testing.T) string {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	binary, err := install.Build(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	return binary
}

// oneLine undoes the wrapping of the table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// applyReportCRDs installs the CRDs that come with the module of the report types.
func applyReportCRDs(t *testing.T) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	require.NoError(t, err)
	for _, name := range []string{"reports", "clusterreports"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "openreports.io_"+name+".yaml"))
		require.NoError(t, err)
		crds, err := controlplane.Decode(bytes.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, cp.Apply(t.Context(), crds...))
	}
}
