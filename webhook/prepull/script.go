package prepull

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// script follows a shell script from its beginning, as far as it can be known without running it.
type script struct {
	shells int
	// background is a command behind & that does not end, lastBackground the last one if it does not.
	background, lastBackground string
}

// endlessScript is the first part of a script that does not end.
func endlessScript(text string, shells int) string {
	if len(text) > maxScript || shells > maxShells {
		return ""
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil || has(file, func(node syntax.Node) bool { _, is := node.(*syntax.FuncDecl); return is }) {
		return "" // a function may be called sleep
	}
	what, _ := (&script{shells: shells}).run(file.Stmts)
	return what
}

// run gives the first part of the statements that does not end. over tells that none is left for what comes after them:
// they leave the script, or may.
func (s *script) run(stmts []*syntax.Stmt) (what string, over bool) {
	for _, stmt := range stmts {
		if what, over = s.statement(stmt); what != "" || over {
			return what, over
		}
	}
	return "", false
}

func (s *script) statement(stmt *syntax.Stmt) (what string, over bool) {
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		s.lastBackground, _ = (&script{shells: s.shells}).command(stmt.Cmd)
		if s.lastBackground != "" {
			s.background = s.lastBackground
		}
		return "", false
	}
	return s.command(stmt.Cmd)
}

func (s *script) command(cmd syntax.Command) (what string, over bool) {
	switch c := cmd.(type) {
	case nil:
		return "", false
	case *syntax.CallExpr:
		return s.call(c)
	case *syntax.Block:
		return s.run(c.Stmts)
	case *syntax.Subshell:
		what, _ = (&script{shells: s.shells}).run(c.Stmts)
		return what, false
	case *syntax.BinaryCmd:
		return s.binary(c)
	case *syntax.WhileClause:
		name := "true"
		if c.Until {
			name = "false"
		}
		if isAlways(c.Cond, name) && !leaves(c.Do) {
			return brief(map[bool]string{false: "while true", true: "until false"}[c.Until]), false
		}
	case *syntax.ForClause:
		if loop, ok := c.Loop.(*syntax.CStyleLoop); ok && loop.Cond == nil && !leaves(c.Do) {
			return "for ((;;))", false
		}
	}
	return "", has(cmd, mayLeave)
}

// binary follows a && b where a does not fail. Of a pipe the last command decides: the others end when no one reads.
func (s *script) binary(c *syntax.BinaryCmd) (what string, over bool) {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		what, _ = (&script{shells: s.shells}).statement(c.Y)
		return what, false
	}
	if what, over = s.statement(c.X); what != "" || over {
		return what, over
	}
	if c.Op == syntax.AndStmt && succeeds(c.X) {
		return s.statement(c.Y)
	}
	return "", has(c.Y, mayLeave)
}

func (s *script) call(c *syntax.CallExpr) (what string, over bool) {
	if len(c.Args) == 0 {
		return "", false
	}
	words := make([]string, 0, len(c.Args))
	for _, arg := range c.Args {
		if word, ok := literal(arg.Parts); ok {
			words = append(words, word)
		}
	}
	known := len(words) == len(c.Args)
	switch name := nameOf(c); {
	case name == "wait" && len(c.Args) == 1:
		return s.background, false
	case name == "wait" && len(c.Args) == 2 && isLastBackground(c.Args[1]):
		return s.lastBackground, false
	case name == "exec" && known:
		return endless(words[1:], s.shells), len(words) > 1
	case mayLeave(c):
		return "", true
	case known:
		return endless(words, s.shells), false
	default:
		return "", false
	}
}

// nameOf is the command that is called; empty where it is not known before the script runs.
func nameOf(c *syntax.CallExpr) string {
	if len(c.Args) == 0 {
		return "" // assignments
	}
	name, _ := literal(c.Args[0].Parts)
	return name
}

// mayLeave tells of a call that ends the script or may, or that runs what no one knows.
func mayLeave(node syntax.Node) bool {
	c, ok := node.(*syntax.CallExpr)
	return ok && len(c.Args) > 0 && slices.Contains([]string{"", "exit", "return", "exec", "kill", "eval", "source", "."}, nameOf(c))
}

// leaves tells whether a loop may be left from within.
func leaves(body []*syntax.Stmt) bool {
	return slices.ContainsFunc(body, func(stmt *syntax.Stmt) bool {
		return has(stmt, func(node syntax.Node) bool {
			c, ok := node.(*syntax.CallExpr)
			return mayLeave(node) || ok && nameOf(c) == "break"
		})
	})
}

func has(node syntax.Node, is func(syntax.Node) bool) bool {
	found := false
	syntax.Walk(node, func(n syntax.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// isAlways tells that a loop's condition is the command, or for true its short form.
func isAlways(cond []*syntax.Stmt, command string) bool {
	if len(cond) != 1 || cond[0].Negated {
		return false
	}
	c, ok := cond[0].Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) == 1 && (nameOf(c) == command || command == "true" && nameOf(c) == ":")
}

// succeeds tells of commands that do not fail as a rule.
func succeeds(stmt *syntax.Stmt) bool {
	if stmt.Negated || len(stmt.Redirs) > 0 {
		return false
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return slices.Contains([]string{"echo", "printf", "true", ":", "date"}, nameOf(c))
	case *syntax.BinaryCmd:
		return c.Op == syntax.AndStmt && succeeds(c.X) && succeeds(c.Y)
	}
	return false
}

// literal is a word that means the same whenever the script runs.
func literal(parts []syntax.WordPart) (word string, ok bool) {
	for _, part := range parts {
		text := ""
		switch p := part.(type) {
		case *syntax.Lit:
			text, ok = p.Value, !strings.Contains(p.Value, `\`)
		case *syntax.SglQuoted:
			text, ok = p.Value, !p.Dollar
		case *syntax.DblQuoted:
			if text, ok = literal(p.Parts); len(p.Parts) == 0 {
				ok = true
			}
		default:
			ok = false
		}
		if !ok {
			return "", false
		}
		word += text
	}
	return word, ok
}

func isLastBackground(word *syntax.Word) bool {
	if len(word.Parts) != 1 {
		return false
	}
	p, ok := word.Parts[0].(*syntax.ParamExp)
	return ok && p.Short && p.Param != nil && p.Param.Value == "!"
}
