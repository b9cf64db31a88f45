package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// runCommand gives what a command prints on standard output, and its error.
func runCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := newCommand(nil, &out, &errOut)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true // as main runs it
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// patched renders the shipped manifests under the patch, as an overlay of one's own does.
func patched(t *testing.T, patch string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "base"), os.DirFS("../../manifests/base")))
	overlay := filepath.Join(dir, "overlay")
	require.NoError(t, os.Mkdir(overlay, 0o700))
	write(t, filepath.Join(overlay, "placeholder-size.yaml"), patch)
	write(t, filepath.Join(overlay, "kustomization.yaml"), "resources: [../base]\npatches: [{path: placeholder-size.yaml}]\n")
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	require.NoError(t, err)
	content, err := rendered.AsYaml()
	require.NoError(t, err)
	path := filepath.Join(dir, "rendered.yaml")
	write(t, path, string(content))
	return path
}

// placeholderFindings are what rules find in the placeholders of the rendered manifests.
func placeholderFindings(t *testing.T, rendered, config string) (findings []string, placeholders int) {
	t.Helper()
	out, err := runCommand(t, "admit", "-f", rendered, "--cluster", "../../manifests/examples/fine", "--config", config, "-o", "json")
	var admissions []admission
	require.NoError(t, json.Unmarshal([]byte(out), &admissions), "%v", err)
	for _, a := range admissions {
		if a.Kind != "Deployment" || !strings.HasPrefix(a.Name, placeholderPrefix) {
			continue
		}
		placeholders++
		for _, f := range a.Findings {
			findings = append(findings, a.Name+" "+f.Rule+" "+f.Action)
		}
	}
	return findings, placeholders
}

// The patch applies to the shipped placeholders, in which no rule then finds a fault; one unit more is refused.
func TestSizePatchFits(t *testing.T) {
	example, err := os.ReadFile("../../manifests/examples/fine/warmpool.yaml")
	require.NoError(t, err)
	for name, c := range map[string]struct{ cpuMode, cpu, more string }{
		"as configured":  {"Coexist", `cpu: "2"`, ""},
		"both exclusive": {"Exclusive", "cpu: 47130m", "cpu: 47131m"},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "warmpool.yaml")
			write(t, config, strings.Replace(string(example), "mode: Coexist", "mode: "+c.cpuMode, 1))
			patch, err := runCommand(t, "size", "--pool", "cpu,gpu", "--cluster", "../../manifests/examples/fine", "--config", config, "-o", "patch")
			require.NoError(t, err)
			require.Equal(t, 2, strings.Count(patch, c.cpu+"\n"), patch)
			rendered := patched(t, patch)
			content, err := os.ReadFile(rendered)
			require.NoError(t, err)
			assert.Equal(t, 2, strings.Count(string(content), c.cpu+"\n"), "the patch is in requests and limits")
			assert.Equal(t, 2, strings.Count(string(content), "memory: 126984576Ki\n"), "the patch is in requests and limits")

			findings, placeholders := placeholderFindings(t, rendered, config)
			assert.Empty(t, findings)
			assert.Equal(t, 2, placeholders)

			if c.more != "" {
				findings, _ = placeholderFindings(t, patched(t, strings.ReplaceAll(patch, c.cpu, c.more)), config)
				assert.Equal(t, []string{"spaces-placeholder-cpu placeholder-size Deny"}, findings)
			}
		})
	}
}

// The table is readable in a terminal of 100 columns.
func TestSizeTableWidth(t *testing.T) {
	table, err := runCommand(t, "size", "--cluster", "../../manifests/examples/fine")
	require.NoError(t, err)
	for line := range strings.Lines(table) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), width, line)
	}
}
