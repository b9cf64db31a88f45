package manifests_test

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

// TestOnAPIServer: a real API server takes every kustomization, warmpool says nothing about its placeholders, and what
// the alerts and the dashboard ask for is what a running warmpool and the API server tell.
func TestOnAPIServer(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	require.NoError(t, cp.Apply(t.Context(), crds(t, root)...))
	binary, err := install.Build(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	for name, dir := range kustomizations(t) {
		t.Run(name, func(t *testing.T) {
			_, rendered := render(t, dir)
			dryRun(t, cp, dir, rendered)
			admit(t, root, binary, rendered)
		})
	}
	t.Run("metrics", func(t *testing.T) { metricsExist(t, cp, root, binary) })
}

// crds are those of all kinds in the manifests.
func crds(t *testing.T, root string) []*unstructured.Unstructured {
	t.Helper()
	all, err := install.CRDs(root)
	require.NoError(t, err)
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	require.NoError(t, err)
	folder := filepath.Join(strings.TrimSpace(string(module)), "deploy", "crds")
	for _, path := range []string{
		filepath.Join(folder, "cert-manager.io_certificates.yaml"),
		filepath.Join(folder, "cert-manager.io_issuers.yaml"),
		filepath.Join("testdata", "monitoring-crds.yaml"),
	} {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		objects, err := controlplane.Decode(bytes.NewReader(content))
		require.NoError(t, err)
		all = append(all, objects...)
	}
	return all
}

// dryRun asks the API server about everything; namespaces have to be there for what is in them.
func dryRun(t *testing.T, cp *controlplane.ControlPlane, dir string, rendered []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range rendered {
		if object.GetKind() == "Namespace" {
			require.NoError(t, cp.Apply(t.Context(), object))
		}
	}
	out, warnings, err := cp.Kubectl(t.Context(), "", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-k", dir)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Len(t, strings.Split(strings.TrimSpace(out), "\n"), len(rendered))
}

// admit has warmpool judge the placeholders by the example cluster: nothing to add and nothing to say.
func admit(t *testing.T, root, binary string, rendered []*unstructured.Unstructured) {
	t.Helper()
	dir := t.TempDir()
	var all strings.Builder
	configuration := filepath.Join(t.TempDir(), "warmpool.yaml") // found in the cluster only where the namespace is the usual one
	for _, object := range rendered {
		document, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		all.WriteString("---\n" + string(document))
		if object.GetKind() == "ConfigMap" && object.GetName() == "warmpool-config" {
			text, _, err := unstructured.NestedString(object.Object, "data", "warmpool.yaml")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(configuration, []byte(text), 0o600))
		}
	}
	file := filepath.Join(dir, "rendered.yaml")
	require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o600))
	for _, name := range []string{"nodes.yaml", "nodepools.yaml", "daemonsets.yaml", "templates.yaml"} {
		content, err := os.ReadFile(filepath.Join(root, "manifests", "examples", "fine", name))
		require.NoError(t, err)
		if strings.Contains(all.String(), "example.com/pool") {
			content = bytes.ReplaceAll(content, []byte("karpenter.sh/nodepool"), []byte("example.com/pool"))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	cmd := exec.CommandContext(t.Context(), binary, "admit", "-f", file, "--cluster", dir, "--config", configuration, "-o", "json")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	var verdicts []struct {
		Name, Pool      string
		Patch, Findings []any
	}
	require.NoError(t, json.Unmarshal(out, &verdicts))
	judged := 0
	for _, v := range verdicts {
		assert.Empty(t, v.Patch, v.Name)
		assert.Empty(t, v.Findings, v.Name)
		if v.Pool != "" {
			judged++
		}
	}
	assert.Equal(t, 2, judged)
}
