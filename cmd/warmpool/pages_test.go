package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// filesOf are the files that a page of the documentation shows: a paragraph that begins with the name, then the content.
func filesOf(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	require.NoError(t, err)
	files := map[string]string{}
	for _, match := range regexp.MustCompile("(?s)\n`([a-z.]+)`: [^`].*?\n\n```yaml\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
		files[match[1]] = match[2]
	}
	return files
}

// The pool of the page about adding one is admitted, in an overlay of one's own, without a word.
func TestPageAddsAPool(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "warmpool", "manifests"), os.DirFS("../../manifests")))
	overlay := filepath.Join(dir, "warmpool-production")
	require.NoError(t, os.Mkdir(overlay, 0o700))
	files := filesOf(t, "add-a-pool.md")
	require.Len(t, files, 3)
	for name, content := range files {
		write(t, filepath.Join(overlay, name), content)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	require.NoError(t, err)
	content, err := rendered.AsYaml()
	require.NoError(t, err)
	all := filepath.Join(dir, "rendered.yaml")
	write(t, all, string(content))

	out, err := runCommand(t, "admit", "-f", all, "--cluster", "../../manifests/examples/fine", "--config", filepath.Join(overlay, "warmpool.yaml"), "-o", "json")
	require.NoError(t, err)
	var admissions []admission
	require.NoError(t, json.Unmarshal([]byte(out), &admissions))
	pools := map[string]int{}
	for _, a := range admissions {
		assert.Empty(t, a.Findings, "%s %s", a.Kind, a.Name)
		if a.Pool != "" {
			pools[a.Pool]++
		}
	}
	assert.Equal(t, map[string]int{"cpu": 1, "gpu": 1, "neuron": 1}, pools)
}

// Commands in pages of the documentation print what stands below them there.
func TestPagesShowOutput(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	blocks := regexp.MustCompile("(?s)(```console\n)(.*?)(```\n)")
	for _, page := range []string{"command-line.md", "sizing-and-cost.md"} {
		path := filepath.Join("docs", page)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Regexp(t, blocks, string(text))
		want := blocks.ReplaceAllStringFunc(string(text), func(block string) string {
			var printed []string
			for line := range strings.Lines(block) {
				if command, found := strings.CutPrefix(strings.TrimSpace(line), "$ warmpool "); found {
					printed = append(printed, "$ warmpool "+command+"\n"+shown(t, strings.Fields(command)))
				}
			}
			return "```console\n" + strings.Join(printed, "\n") + "```\n"
		})
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
			continue
		}
		assert.Equal(t, want, string(text), "run make docs")
	}
}

// shown is what a command writes to a terminal, standard error last.
func shown(t *testing.T, args []string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := newCommand(nil, &out, &errOut)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.ExecuteContext(t.Context()); err != nil && err.Error() != "" {
		errOut.WriteString("error: " + err.Error() + "\n")
	}
	return out.String() + errOut.String()
}
