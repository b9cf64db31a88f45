package docs

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/rulecases"
	"warmpool.sh/webhook/policy"
)

// TestRulePages keeps rules/ equal to the table of rules, the comments above them and their testdata: one page for each
// rule. Their table in README.md is kept by cmd/warmpool, which prints it.
func TestRulePages(t *testing.T) {
	pages := map[string]string{}
	notes, sources := readNotes(t)
	for _, rule := range policy.Rules() {
		n, ok := notes[rule.ID]
		require.True(t, ok, "rules.yaml has no entry for %s", rule.ID)
		pages[rule.ID+".md"] = rulePage(t, rule, n, sources)
	}
	assert.Len(t, notes, len(policy.Rules()), "rules.yaml has rules that are not there")
	there, err := filepath.Glob(filepath.Join("rules", "*"))
	require.NoError(t, err)
	for _, path := range there {
		if filepath.Base(path) == "README.md" {
			continue
		}
		if _, wanted := pages[filepath.Base(path)]; !wanted && *update {
			require.NoError(t, os.Remove(path))
		} else {
			assert.True(t, wanted, "%s is of no rule: run make docs", path)
		}
	}
	for name, want := range pages {
		path := filepath.Join("rules", name)
		if *update {
			require.NoError(t, os.MkdirAll("rules", 0o750))
			require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
			continue
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "run make docs")
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// pageNotes is what rules.yaml says about the page of a rule.
type pageNotes struct {
	// Fails and Passes are the cases of the rule's testdata that are its examples.
	Fails, Passes string
	// Sources are keys of what the rule rests on.
	Sources []string
}

type source struct{ Title, URL string }

func readNotes(t *testing.T) (notes map[string]pageNotes, sources map[string]source) {
	t.Helper()
	content, err := os.ReadFile("rules.yaml")
	require.NoError(t, err)
	var file struct {
		Sources map[string]source
		Rules   map[string]pageNotes
	}
	require.NoError(t, yaml.UnmarshalStrict(content, &file))
	cited := map[string]bool{}
	for id, n := range file.Rules {
		assert.NotEmpty(t, n.Sources, "rules.yaml: %s has no source", id)
		for _, key := range n.Sources {
			assert.Contains(t, file.Sources, key, "rules.yaml: source of %s", id)
			cited[key] = true
		}
	}
	for key := range file.Sources {
		assert.True(t, cited[key], "rules.yaml: no rule rests on %s", key)
	}
	return file.Rules, file.Sources
}

func rulePage(t *testing.T, rule *policy.Rule, notes pageNotes, sources map[string]source) string {
	t.Helper()
	said := header(t, rule.ID)
	fails, passes := readCase(t, rule.ID, notes.Fails), readCase(t, rule.ID, notes.Passes)
	checked, atAdmission := "at admission, and by `warmpool audit`", string(rule.Action)
	if rule.Action == "Audit" {
		atAdmission = "admitted; counted in the metrics"
	}
	if rule.AuditOnly {
		checked, atAdmission = "by `warmpool audit`", "not judged"
	}
	if rule.Fills != "" {
		atAdmission += "; warmpool fills: " + rule.Fills
	}
	rows := [][2]string{
		{"Applies to", string(rule.Subject)}, {"Checked", checked}, {"At admission", atAdmission}, {"Severity in an audit", string(rule.Severity)},
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n%s\n\n| | |\n|---|---|\n", rule.ID, rule.Summary)
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s | %s |\n", row[0], cell(row[1]))
	}
	fmt.Fprintf(&text, "\n## Why\n\n%s\n\n## What is checked\n\nApplies to: %s\n\nRequires: %s\n", sentence(said["Why"]), said["Applies to"], said["Requires"])
	fmt.Fprintf(&text, "\n## Example that fails\n\n%s%s\n\n```yaml\n%s```\n\n%s", fails.comment, fails.surroundings(), fails.text(), fails.answer())
	fmt.Fprintf(&text, "\n## Example that passes\n\n%s\n\n%s", passes.comment, fixed(fails, passes))
	fmt.Fprintf(&text, "\n## Fix\n\n%s\n%s\n## Sources\n\n", rule.Fix, says(t, rule.ID))
	for _, key := range notes.Sources {
		fmt.Fprintf(&text, "- [%s](%s)\n", sources[key].Title, sources[key].URL)
	}
	text.WriteString("\n[All rules](README.md)\n")
	return text.String()
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// header are the parts of the comment above a rule, by what they begin with.
func header(t *testing.T, id string) map[string]string {
	t.Helper()
	path := filepath.Join("..", "webhook", "policy", strings.ReplaceAll(id, "-", "_")+".go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	require.NoError(t, err)
	for _, comment := range file.Comments {
		text := line(comment.Text())
		if !strings.HasPrefix(text, "Applies to: ") {
			continue
		}
		applies, rest, ok := strings.Cut(strings.TrimPrefix(text, "Applies to: "), " Requires: ")
		require.True(t, ok, "%s: the comment of the rule has no Requires", path)
		requires, why, ok := strings.Cut(rest, " Why: ")
		require.True(t, ok, "%s: the comment of the rule has no Why", path)
		return map[string]string{"Applies to": applies, "Requires": requires, "Why": why}
	}
	require.Fail(t, "no comment of the rule", path)
	return nil
}

// ruleCase is a case with what its page shows of it.
type ruleCase struct {
	*rulecases.Case
	comment string
}

func readCase(t *testing.T, id, name string) *ruleCase {
	t.Helper()
	c := rulecases.Read(t, filepath.Join("..", "webhook", "policy", "testdata", id, name+".txtar"))
	require.False(t, c.Own["old.yaml"], "%s %s is about an update", id, name)
	comment := strings.TrimSpace(string(c.Archive.Comment))
	require.NotEmpty(t, comment, "%s %s does not say what it is about", id, name)
	return &ruleCase{c, comment}
}

// text are the objects of a case in one file.
func (c *ruleCase) text() string {
	var parts []string
	for _, section := range []string{"config.yaml", "cluster.yaml", "object.yaml"} {
		if c.Own[section] {
			parts = append(parts, c.Sections[section])
		}
	}
	return strings.Join(parts, "---\n")
}

// surroundings says what else the case was judged by.
func (c *ruleCase) surroundings() string {
	const folder = "../../webhook/policy/testdata/"
	var parts []string
	for _, name := range []string{"config", "cluster"} {
		if !c.Own[name+".yaml"] {
			parts = append(parts, "["+name+".yaml]("+folder+name+".yaml)")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " Beside it there is " + strings.Join(parts, " and ") + "."
}

// answer is what warmpool makes of a case that fails.
func (c *ruleCase) answer() string {
	var text string
	if patch := c.Sections["want.json"]; patch != "" {
		text += "At admission warmpool fills in:\n\n```json\n" + patch + "```\n"
	}
	// What is of no pool stands there with an empty one.
	if findings := strings.ReplaceAll(c.Sections["want.txt"], " (pool )", ""); findings != "" {
		text += "warmpool says:\n\n```text\n" + findings + "```\n"
	}
	return text
}

// fixed is the passing example: what is different, where that is little, else all of it.
func fixed(fails, passes *ruleCase) string {
	// Without the names of files, of which diff writes three lines.
	parts := bytes.SplitAfterN(diff.Diff("fails", []byte(fails.text()), "passes", []byte(passes.text())), []byte("\n"), 4)
	text := passes.text()
	if len(parts) == 4 {
		changed := 0
		for line := range bytes.Lines(parts[3]) {
			if line[0] == '+' || line[0] == '-' {
				changed++
			}
		}
		if 2*changed <= strings.Count(text, "\n") {
			return "```diff\n" + string(parts[3]) + "```\n"
		}
	}
	return "```yaml\n" + text + "```\n"
}
