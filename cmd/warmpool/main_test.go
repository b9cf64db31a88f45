package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"warmpool.sh/webhook/policy"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script and the rule table in docs/rules/README.md")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"warmpool": main, "kubectl-warmpool": main, "kubectl_complete-warmpool": main})
}

// TestCommands runs the scripts of testdata/script: whole commands with their output and exit codes.
func TestCommands(t *testing.T) {
	manifests, err := filepath.Abs("../../manifests")
	require.NoError(t, err)
	folders, err := filepath.Abs("testdata/folders")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MANIFESTS", manifests)
			env.Setenv("FOLDERS", folders)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "kustomize": kustomize},
	})
}

// exits runs "exits CODE warmpool ARGS…": exec alone tells only failure from success.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

// kustomize runs "kustomize FOLDER FILE": as kubectl kustomize does, into a file.
func kustomize(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: kustomize FOLDER FILE")
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), ts.MkAbs(args[0]))
	ts.Check(err)
	text, err := rendered.AsYaml()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

const rulesBegin, rulesEnd = "<!-- rules: begin -->\n", "<!-- rules: end -->"

// linked makes links to their pages of the ids in a table of rules.
func linked(table string) string {
	for _, id := range policy.IDs() {
		table = strings.ReplaceAll(table, "| `"+id+"` |", "| [`"+id+"`]("+id+".md) |")
	}
	return table
}

// TestRuleTable keeps the table of docs/rules/README.md equal to the rules.
func TestRuleTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "rules", "README.md")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(data), rulesBegin)
	require.True(t, found, "docs/rules/README.md has no %q", rulesBegin)
	_, after, found := strings.Cut(rest, rulesEnd)
	require.True(t, found, "docs/rules/README.md has no %q", rulesEnd)
	want := before + rulesBegin + linked(rulesMarkdown(ruleRows())) + rulesEnd + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(data), "run make docs")
}
