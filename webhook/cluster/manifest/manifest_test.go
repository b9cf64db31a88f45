package manifest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/manifest"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

// Each archive of testdata is a case: its second line holds the paths to read, "stdin" is standard
// input, the other sections are files, and "want" is what is read, or the error.
func TestRead(t *testing.T) {
	testdata, err := filepath.Abs("testdata") // the cases change the working folder
	require.NoError(t, err)
	cases, err := filepath.Glob(filepath.Join(testdata, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			got := run(t, archive)
			at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			require.GreaterOrEqual(t, at, 0, "the archive has no section want")
			if *update {
				archive.Files[at].Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
			}
			assert.Equal(t, string(archive.Files[at].Data), got)
		})
	}
}

func run(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	folder := t.TempDir()
	var stdin string
	for _, f := range archive.Files {
		switch f.Name {
		case "want":
		case "stdin":
			stdin = string(f.Data)
		default:
			write(t, filepath.Join(folder, f.Name), string(f.Data))
		}
	}
	t.Chdir(folder)
	_, args, _ := strings.Cut(string(archive.Comment), "\n")
	snapshot, objects, err := manifest.Read(strings.Fields(args), strings.NewReader(stdin))
	if err != nil {
		assert.Nil(t, snapshot)
		return err.Error() + "\n"
	}
	return describe(snapshot, objects)
}

func describe(snapshot *cluster.Snapshot, objects []manifest.Object) string {
	var text strings.Builder
	for _, o := range objects {
		fmt.Fprintln(&text, o)
	}
	keys(&text, "nodes", snapshot.Nodes)
	keys(&text, "nodepools", snapshot.NodePools)
	keys(&text, "priorityclasses", snapshot.PriorityClasses)
	keys(&text, "namespaces", snapshot.Namespaces)
	keys(&text, "templates", snapshot.Templates)
	keys(&text, "deployments", snapshot.Deployments)
	keys(&text, "daemonsets", snapshot.DaemonSets)
	keys(&text, "nodeclaims", snapshot.NodeClaims)
	keys(&text, "limitranges", snapshot.LimitRanges)
	keys(&text, "resourcequotas", snapshot.ResourceQuotas)
	keys(&text, "runtimeclasses", snapshot.RuntimeClasses)
	return text.String()
}

func keys[T any](text *strings.Builder, kind string, facts cluster.Facts[T]) {
	if !facts.Known() {
		fmt.Fprintf(text, "%s: not known: %s\n", kind, facts.Reason())
		return
	}
	fmt.Fprintf(text, "%s:", kind)
	for key := range facts.All() {
		fmt.Fprintf(text, " %s", key)
	}
	fmt.Fprintln(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
