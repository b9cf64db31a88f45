package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readiness are the files whose errors /readyz shows.
var readiness = []string{"certs/ready.go", "webhook/controller/policysync/keeper.go", "webhook/controller/policysync/write.go", "webhook/controller/policysync/sample.go"}

// TestMessages wants each text that serve logs, makes Events of, or answers at /readyz in some page, and each metric in its
// own.
func TestMessages(t *testing.T) {
	var all strings.Builder
	written := pages(t)
	for _, text := range written {
		all.WriteString(text)
	}
	reference := written[filepath.Join("..", "docs", "reference", "metrics.md")]
	found := 0
	for _, folder := range []string{"certs", "webhook", "cmd/warmpool"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", filepath.FromSlash(folder)), func(path string, _ fs.DirEntry, err error) error {
			if path == filepath.Join("..", "webhook", "chart") { // of warmpool init, which explains itself in what it writes
				return filepath.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, name := range metrics(t, path) {
				assert.Contains(t, reference, "`"+name+"`", "%s: reference/metrics.md does not have it", path)
			}
			for _, text := range texts(t, path) {
				found++
				assert.Contains(t, all.String(), constantPart(text), "%s: no page has %q", path, text)
			}
			return nil
		}))
	}
	assert.Greater(t, found, 60, "texts are looked for in the wrong way")
}

// texts are what a file logs, makes Events of, or answers at /readyz.
func texts(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var found []string
	add := func(expression ast.Expr) {
		if literal, ok := expression.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			found = append(found, text)
		}
	}
	ready := false
	for _, name := range readiness {
		ready = ready || filepath.Join("..", filepath.FromSlash(name)) == path
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ValueSpec: // reasons of Events and in labels of metrics
			for i, name := range n.Names {
				if strings.HasPrefix(name.Name, "reason") && i < len(n.Values) {
					add(n.Values[i])
				}
			}
		case *ast.CallExpr:
			selector, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch argument := logged[selector.Sel.Name]; {
			case argument > 0 && len(n.Args) >= argument:
				add(n.Args[argument-1])
			case ready && len(n.Args) > 0 && (selector.Sel.Name == "Errorf" || selector.Sel.Name == "New"):
				add(n.Args[0])
			}
		}
		return true
	})
	return found
}

// metrics are the names of metrics in a file.
func metrics(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var names []string
	for _, match := range metricName.FindAllSubmatch(content, -1) {
		names = append(names, string(match[1]))
	}
	return names
}

// logged are the methods that log or make Events, with which of their arguments is the text or the reason.
var logged = map[string]int{"Info": 1, "Error": 2, "say": 1, "Eventf": 4, "tell": 5, "tellResize": 4}

var (
	verb       = regexp.MustCompile(`%[-+#.0-9]*[a-zA-Z]`)
	metricName = regexp.MustCompile(`"(warmpool_[a-z_]+)"`)
)

// constantPart is the longest part of a format that does not differ.
func constantPart(format string) string {
	longest := ""
	for _, part := range verb.Split(format, -1) {
		if part = strings.Trim(part, " :;,()"); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
