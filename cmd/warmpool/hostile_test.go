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
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/audit"
)

// spell steers terminals and CI systems.
const spell = "x\n::error::a\n  ::warning::b\n##[error]c ##vso[task.complete]d \x1b[31me\r\x1b[0Ksection_start:1:f \u202eg \x9b1mh\u2028::i"

// hostileFolder is a pull request of somebody who wants to steer: every name and text is the spell.
func hostileFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, objects ...map[string]any) {
		var text bytes.Buffer
		for _, object := range objects {
			document, err := json.Marshal(object)
			require.NoError(t, err)
			text.WriteString(string(document) + "\n---\n")
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600))
	}
	container := map[string]any{"name": spell, "image": spell, "command": []string{spell}, "resources": map[string]any{"requests": map[string]any{"cpu": "2"}}}
	placeholder := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": spell, "namespace": spell, "labels": map[string]any{"warmpool.sh/pool": "cpu", spell: spell}},
		"spec": map[string]any{"replicas": 2, "selector": map[string]any{"matchLabels": map[string]any{"a": spell}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": spell}, "annotations": map[string]any{"karpenter.sh/do-not-disrupt": spell}},
			"spec":     map[string]any{"priorityClassName": spell, "nodeSelector": map[string]any{spell: spell}, "containers": []any{container}, "initContainers": []any{container}},
		}},
	}
	write(strings.ReplaceAll(spell, "\n", " ")+"\n::error::f.yaml", placeholder)
	write("broken-"+spell+".yaml", map[string]any{"apiVersion": spell, "kind": spell, "metadata": map[string]any{"name": spell}})
	write("config.yaml", map[string]any{
		"apiVersion": "config.warmpool.sh/v1alpha1", "kind": "WarmPoolConfiguration",
		"pools": []any{map[string]any{"name": "cpu", "nodePools": []string{"spaces-cpu"}, "templates": []any{map[string]any{"namespace": "a", "name": "b"}}}},
	})
	return dir
}

// No command says anything that steers, in no format, whatever objects and files are called.
func TestHostileNamesSteerNothing(t *testing.T) {
	dir := hostileFolder(t)
	var commands [][]string
	for _, format := range audit.Formats() {
		commands = append(commands, []string{"audit", "-f", dir, "-o", format})
	}
	for _, format := range []string{"yaml", "patch", "json"} {
		commands = append(commands, []string{"admit", "-f", dir, "--cluster", dir, "-o", format})
	}
	for _, format := range []string{"table", "json", "yaml"} {
		commands = append(commands, []string{"size", "--cluster", dir, "-o", format})
	}
	commands = append(commands, []string{"audit", "-f", spell}, []string{"admit", "-f", spell}, []string{spell})
	said := 0
	for _, arguments := range commands {
		var out, errOut bytes.Buffer
		cmd := newCommand(nil, &out, &errOut)
		cmd.SetArgs(arguments)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.Execute(); err != nil {
			_, _ = newQuoted(&errOut).Write([]byte("error: " + err.Error() + "\n")) // as main says it
		}
		t.Run(strings.ReplaceAll(strings.Join(arguments, " "), dir, "DIR"), func(t *testing.T) {
			harmless(t, out.String())
			harmless(t, errOut.String())
		})
		if strings.Contains(out.String()+errOut.String(), "section_start") {
			said++
		}
	}
	assert.Greater(t, said, 5, "else nothing is tried")
}

// What is quoted in an object that is admitted has the same content as before.
func TestAdmittedObjectsKeepTheirContent(t *testing.T) {
	dir := t.TempDir()
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b"}, "data": map[string]any{"a": spell, "b": "x\n::error::y\n"},
	}
	document, err := json.Marshal(object)
	require.NoError(t, err)
	file := filepath.Join(dir, "a.yaml")
	require.NoError(t, os.WriteFile(file, document, 0o600))
	config := filepath.Join(hostileFolder(t), "config.yaml")
	var out, errOut bytes.Buffer
	cmd := newCommand(nil, &out, &errOut)
	cmd.SetArgs([]string{"admit", "-f", file, "--config", config})
	require.NoError(t, cmd.Execute(), errOut.String())
	harmless(t, out.String())
	want, err := yaml.YAMLToJSON(document)
	require.NoError(t, err)
	got, err := yaml.YAMLToJSON(out.Bytes())
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
}
