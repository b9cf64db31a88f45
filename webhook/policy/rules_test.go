package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/rulecases"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata from what the rules say now")

// TestRules runs the cases of each rule; package rulecases says what is in them.
func TestRules(t *testing.T) {
	folders := map[string]bool{}
	for _, rule := range policy.Rules() {
		folders[rule.ID] = true
		t.Run(rule.ID, func(t *testing.T) {
			kinds := map[string]int{}
			for _, file := range glob(t, filepath.Join("testdata", rule.ID, "*.txtar")) {
				kind, _, _ := strings.Cut(filepath.Base(file), "-")
				kinds[kind]++
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, rule, kind, file) })
			}
			assert.NotZero(t, kinds["allow"], "the rule needs a case that it allows")
			assert.NotZero(t, kinds["deny"], "the rule needs a case that it finds fault with")
			if rule.Fills != "" {
				assert.NotZero(t, kinds["mutate"], "the rule needs a case that it fills")
			}
			delete(kinds, "allow")
			delete(kinds, "deny")
			if rule.Fills != "" {
				delete(kinds, "mutate")
			}
			assert.Empty(t, kinds, "cases are named allow-, deny- or mutate- (of rules that fill)")
		})
	}
	for _, path := range glob(t, filepath.Join("testdata", "*")) {
		if info, err := os.Stat(path); assert.NoError(t, err) && info.IsDir() {
			assert.True(t, folders[filepath.Base(path)] || filepath.Base(path) == "fuzz", "%s belongs to no rule", path)
		}
	}
}

func runCase(t *testing.T, rule *policy.Rule, kind, file string) {
	c := readCase(t, file)
	c.Alone(rule.ID)
	e := c.evaluator(t)
	object := c.object(t, e, "object.yaml")
	if object == nil {
		findings, _ := e.Audit()
		c.compare(t, kind, file, map[string]string{"want.txt": printAudit(findings)})
		return
	}
	old := c.object(t, e, "old.yaml")
	if old != nil {
		object.Updates(old.Deployment)
	}
	patch := e.Mutate(object)
	findings := e.Check(object)
	if old != nil {
		findings = e.CheckUpdate(object, old)
	}
	for _, f := range findings {
		if f.Action == config.Deny && rule.Action == config.Deny {
			assert.Equal(t, policy.SeverityError, f.Severity, "denied, and milder in audits: %v", f.Error)
		}
	}
	findings = append(object.Replaced(), findings...)
	c.compare(t, kind, file, map[string]string{"want.json": printPatch(t, patch), "want.txt": printFindings(findings)})
}

// compare holds what a case gives to what its name says and its file has, or writes the file.
func (c *testCase) compare(t *testing.T, kind, file string, got map[string]string) {
	t.Helper()
	switch kind {
	case "allow":
		assert.Empty(t, got["want.json"], "patch")
		assert.Empty(t, got["want.txt"], "findings")
	case "deny":
		assert.NotEmpty(t, got["want.txt"], "findings")
	case "mutate":
		assert.NotEmpty(t, got["want.json"], "patch")
	}
	if *update {
		c.write(t, file, got)
		return
	}
	for name, text := range got {
		assert.Equal(t, c.Sections[name], text, name)
	}
}

// testCase is a case with what the tests make of it.
type testCase struct{ *rulecases.Case }

func readCase(t testing.TB, file string) *testCase {
	t.Helper()
	return &testCase{rulecases.Read(t, file)}
}

func (c *testCase) evaluator(t *testing.T) *policy.Evaluator {
	t.Helper()
	e, err := policy.New(c.Config, c.Facts(t), time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	return e
}

func (c *testCase) object(t *testing.T, e *policy.Evaluator, section string) *policy.Object {
	t.Helper()
	text, ok := c.Sections[section]
	if !ok {
		return nil
	}
	return decode(t, e, []byte(text))
}

func decode(t *testing.T, e *policy.Evaluator, data []byte) *policy.Object {
	t.Helper()
	var meta metav1.TypeMeta
	require.NoError(t, yaml.Unmarshal(data, &meta))
	switch meta.Kind {
	case "Pod":
		var pod corev1.Pod
		require.NoError(t, yaml.UnmarshalStrict(data, &pod))
		return e.Pod(&pod, pod.Namespace)
	case "Deployment":
		var d appsv1.Deployment
		require.NoError(t, yaml.UnmarshalStrict(data, &d))
		return e.Placeholder(&d, d.Namespace)
	}
	require.Fail(t, "object.yaml must be a Pod or a Deployment", "kind %q", meta.Kind)
	return nil
}

func (c *testCase) write(t *testing.T, file string, got map[string]string) {
	t.Helper()
	kept := c.Archive.Files[:0]
	for _, f := range c.Archive.Files {
		if _, rewritten := got[f.Name]; !rewritten {
			kept = append(kept, f)
		}
	}
	for _, name := range []string{"want.json", "want.txt"} {
		if got[name] != "" {
			kept = append(kept, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	c.Archive.Files = kept
	require.NoError(t, os.WriteFile(file, txtar.Format(c.Archive), 0o600))
}

func printPatch(t *testing.T, patch placement.Patch) string {
	t.Helper()
	var out bytes.Buffer
	for _, operation := range patch {
		line, err := json.Marshal(operation)
		require.NoError(t, err)
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.String()
}

func printFindings(findings []policy.Finding) string {
	var out strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&out, "%s, %s: %v\n  Fix: %s\n", f.Action, f.Severity, f.Error, f.Fix)
	}
	return out.String()
}

func printAudit(findings []policy.Finding) string {
	var out strings.Builder
	for _, f := range findings {
		name := strings.TrimPrefix(f.Object.Namespace+"/"+f.Object.Name, "/")
		fmt.Fprintf(&out, "%s %s (pool %s), %s: %v\n  Fix: %s\n", f.Object.Kind, name, f.Pool, f.Severity, f.Error, f.Fix)
	}
	return out.String()
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return paths
}

func TestRuleTable(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range policy.Rules() {
		assert.False(t, seen[rule.ID], "%s stands twice", rule.ID)
		seen[rule.ID] = true
		assert.True(t, strings.HasSuffix(rule.Summary, "."), "%s: the summary is a sentence", rule.ID)
		assert.True(t, strings.HasSuffix(rule.Fix, "."), "%s: the fix is a sentence", rule.ID)
		assert.FileExists(t, strings.ReplaceAll(rule.ID, "-", "_")+".go")
		assert.Contains(t, []policy.Severity{policy.SeverityError, policy.SeverityWarning, policy.SeverityInfo}, rule.Severity, rule.ID)
		assert.Contains(t, []config.Action{config.Deny, config.Warn, config.Audit}, rule.Action, rule.ID)
		if rule.Action == config.Deny {
			assert.Equal(t, policy.SeverityError, rule.Severity, "%s: what admission denies, audits call an error", rule.ID)
		}
		prefix := map[policy.Subject]string{policy.PlaceholderDeployment: "placeholder-", policy.WorkspacePod: "workspace-"}[rule.Subject]
		assert.True(t, strings.HasPrefix(rule.ID, prefix), rule.ID)
	}
}
