package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/policy"
)

// In one example cluster each rule finds one fault, in the other none does.
func TestExamples(t *testing.T) {
	once := map[string]int{}
	for _, id := range policy.IDs() {
		once[id] = 1
	}
	assert.Equal(t, once, auditExample(t, "broken"))
	assert.Empty(t, auditExample(t, "fine"))
}

// auditExample counts the findings of each rule.
func auditExample(t *testing.T, name string) map[string]int {
	t.Helper()
	out, err := runCommand(t, "audit", "-f", "../../manifests/examples/"+name, "-o", "json", "--fail-on", "none")
	require.NoError(t, err)
	var report struct {
		Summary  struct{ Objects int }
		Findings []struct{ Rule string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	assert.NotZero(t, report.Summary.Objects)
	counts := map[string]int{}
	for _, f := range report.Findings {
		counts[f.Rule]++
	}
	return counts
}
