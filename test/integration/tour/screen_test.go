package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "* "},
		{"one  two\nthree", "* one two three"},
		{strings.Repeat("x", 200) + " y", "* " + strings.Repeat("x", 200) + "\n  y"},
		{strings.Repeat("1234 ", 20), "* " + strings.TrimSpace(strings.Repeat("1234 ", 18)) + "\n  1234 1234"},
		{strings.Repeat("…", textWidth-4) + " y", "* " + strings.Repeat("…", textWidth-4) + " y"},
	} {
		assert.Equal(t, test.want, wrap(test.text, "* ", "  "))
	}
}

func TestDiff(t *testing.T) {
	same := strings.Repeat("same\n", longestContext)
	for _, test := range []struct{ name, before, after, want string }{
		{"added", "a:\n", "a:\n  b: 1\n", "    a:\n  +   b: 1\n"},
		{"changed beside each other", "a: 1\nb: 2\nc: 3\n", "a: 2\nb: 3\nd: 4\n", "  - c: 3\n  - a: 1\n  + a: 2\n  - b: 2\n  + b: 3\n  + d: 4\n"},
		{"long context", same + "same\n", same + "same\nnew\n", "    same\n    same\n    ...\n    same\n    same\n  + new\n"},
		{"context that is not long", same, same + "new\n", strings.Repeat("    same\n", longestContext) + "  + new\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			newScreen(&out).diff(test.before, test.after)
			assert.Equal(t, test.want, out.String())
		})
	}
}

func TestColours(t *testing.T) {
	var out bytes.Buffer
	(&screen{out: &out, colour: true}).diff("a: 1", "a: 2")
	assert.Equal(t, red+"  - a: 1"+reset+"\n"+green+"  + a: 2"+reset+"\n", out.String())
}

func TestDiffering(t *testing.T) {
	before := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"uid": "1", "name": "same"},
		"spec": map[string]any{
			"affinity": map[string]any{"podAffinity": "same"},
			"volumes":  []any{"kube-api-access-abcde"},
			"removed":  "x",
		},
		"status": map[string]any{"phase": "Pending"},
	}}
	after := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"uid": "2", "name": "same"},
		"spec": map[string]any{
			"affinity": map[string]any{"podAffinity": "same", "nodeAffinity": "new"},
			"volumes":  []any{"kube-api-access-fghij"},
		},
	}}
	left, right, err := differing(before, after)
	require.NoError(t, err)
	assert.Equal(t, "spec:\n  affinity:\n  removed: x\n", left)
	assert.Equal(t, "spec:\n  affinity:\n    nodeAffinity: new\n", right)
}
