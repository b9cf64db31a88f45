package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/cel"
)

// shrink gives the smallest pod that can be had from a pod by taking parts away, one after the other, and that the policy
// and the webhook still treat differently.
func (w *world) shrink(t *testing.T, body []byte) []byte {
	t.Helper()
	for smaller := true; smaller; {
		smaller = false
		var pod any
		require.NoError(t, json.Unmarshal(body, &pod))
		for range parts(pod) {
			candidate, err := json.Marshal(pod)
			require.NoError(t, err)
			if w.try(t, candidate).fault == "" {
				continue
			}
			body, smaller = candidate, true
			break
		}
	}
	return body
}

// parts takes each part of a document away in turn, larger ones first, and puts it back when the loop goes on.
func parts(root any) func(yield func() bool) {
	return func(yield func() bool) { walk(root, func(any) {}, yield) }
}

// walk visits a document; set replaces it in its parent.
func walk(value any, set func(any), yield func() bool) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			part := v[key]
			delete(v, key)
			if !yield() {
				return false
			}
			v[key] = part
			if !walk(part, func(other any) { v[key] = other }, yield) {
				return false
			}
		}
	case []any:
		for i, part := range v {
			set(slices.Delete(slices.Clone(v), i, i+1))
			if !yield() {
				return false
			}
			set(v)
			if !walk(part, func(other any) { v[i] = other }, yield) {
				return false
			}
		}
	}
	return true
}

// explain prints the smallest pod that differs, with how, and the parameters of its pool.
func (w *world) explain(t *testing.T, body []byte) string {
	t.Helper()
	body = w.shrink(t, body)
	result := w.try(t, body)
	pod, err := yaml.JSONToYAML(body)
	require.NoError(t, err)
	placement, err := cel.NewPlacement(w.evaluator, "warmpool-system")
	require.NoError(t, err)
	data := placement.Parameters.Data
	maps.DeleteFunc(data, func(key, _ string) bool {
		return strings.Contains(key, ".") && !strings.HasPrefix(key, result.pool+".")
	})
	parameters, err := yaml.Marshal(data)
	require.NoError(t, err)
	text := fmt.Sprintf("%s\nThe smallest such pod:\n%s\nThe parameters:\n%s", result.fault, pod, parameters)
	switch {
	case result.next != nil:
		text += "\nFrom once (-) to twice (+):\n" + diff.Diff(bare(result.got), bare(result.next))
	case result.got != nil:
		text += "\nFrom the webhook (-) to the policy (+):\n" + diff.Diff(bare(result.want), bare(result.got))
	}
	return text
}
