package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// says are the texts in the functions of a rule's file, as a list for its page, so that a message is found by a part of it.
func says(t *testing.T, id string) string {
	t.Helper()
	path := filepath.Join("..", "webhook", "policy", strings.ReplaceAll(id, "-", "_")+".go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var list strings.Builder
	written := map[string]bool{}
	for _, declaration := range file.Decls {
		ast.Inspect(declaration, func(node ast.Node) bool {
			if general, ok := node.(*ast.GenDecl); ok && general.Tok == token.VAR { // the rule itself, which the page shows elsewhere
				return false
			}
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if text = strings.TrimSpace(verb.ReplaceAllString(text, "…")); strings.Count(text, " ") > 2 && !written[text] && !strings.ContainsAny(text, "\n`") {
				written[text] = true
				list.WriteString("- `" + text + "`\n")
			}
			return true
		})
	}
	if list.Len() == 0 {
		return ""
	}
	return "\n## What it can say\n\n`…` stands for what differs.\n\n" + list.String()
}
