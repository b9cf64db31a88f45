package manifest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

const meta = "apiVersion: v1\nkind: Pod\nmetadata: {name: w}\n"

// What quick reads is what kubectl's builder reads.
func TestQuickReadsAsTheBuilder(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"plain":              {meta + "spec: {a: [1, -2, 0x10, 0o7, 017, 1_000, yes, 'yes', ~, null, \"\", {}, [], \"\\u00e9\"]}\n", true},
		"times":              {meta + "spec: {creationTimestamp: 2026-01-02T03:04:05Z, date: 2026-01-02}\n", true},
		"block scalars":      {meta + "spec:\n  a: |+\n    x\n\n  b: >-\n    y\n    z\n", true},
		"anchors":            {meta + "spec: {a: &a {b: [1]}, c: *a, d: [*a, *a]}\n", true},
		"the last counts":    {meta + "spec: {a: 1}\nspec: {b: 2}\n", true},
		"largest integer":    {meta + "spec: {a: 9223372036854775807}\n", true},
		"JSON":               {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"w"},"spec":{"a":1,"b":1.0,"c":1e3,"d":9223372036854775808}}`, true},
		"JSON list":          {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"}]}`, true},
		"list":               {"apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: Pod}]\n", true},
		"list of its kind":   {"apiVersion: v1\nkind: PodList\nitems:\n- {metadata: {name: a}}\n", false},
		"list of nothing":    {"apiVersion: v1\nkind: List\nitems: null\n", false},
		"merge":              {meta + "spec: {a: &a {b: 1}, c: {<<: *a, d: 2}}\n", false},
		"floats":             {meta + "spec: {a: 1.0, b: 1e3, c: 18446744073709551615}\n", false},
		"not a number":       {meta + "spec: {a: .nan}\n", false},
		"other keys":         {meta + "spec: {1: a, true: b, 1.5: c}\n", false},
		"binary":             {meta + "spec: {a: !!binary /w==}\n", false},
		"explicit timestamp": {meta + "spec: {a: !!timestamp 2026-01-02}\n", true},
		"flow YAML":          {"{apiVersion: v1, kind: Pod, metadata: {name: w}}", false},
		"nothing":            {"# a comment\n", false},
		"broken":             {"a: [", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := quick(c.text)
			assert.Equal(t, c.ok, ok)
			sameAsBuilder(t, c.text)
		})
	}
}

func sameAsBuilder(t *testing.T, text string) {
	t.Helper()
	content, ok := quick(text)
	if !ok || check(content) != nil {
		return
	}
	got, err := flatten(nil, &unstructured.Unstructured{Object: content}, "")
	require.NoError(t, err)
	infos, err := resource.NewLocalBuilder().Unstructured().ContinueOnError().Stream(strings.NewReader(text), "stream").Do().Infos()
	require.NoError(t, err)
	var want []item
	for _, info := range infos {
		want, err = flatten(want, info.Object, "")
		require.NoError(t, err)
	}
	assert.Equal(t, want, got)
	sameLines(t, text)
}

// sameLines compares the lines of blocks with those of YAML's parser.
func sameLines(t *testing.T, text string) {
	t.Helper()
	root, ok := readBlocks(text, true)
	if !ok {
		return
	}
	whole := block{text: text, line: 1}
	require.Equal(t, whole.find(nil), root.find(nil))
	require.NotNil(t, whole.node)
	left := 1000 // aliases can make many of few
	var walk func(*yaml.Node, []string)
	walk = func(node *yaml.Node, path []string) {
		if left--; left < 0 || len(path) > 20 {
			return
		}
		require.Equal(t, whole.find(path), root.find(path), "%q", path)
		switch node.Kind {
		case yaml.AliasNode:
			walk(node.Alias, path)
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				walk(node.Content[i+1], append(slices.Clone(path), node.Content[i].Value))
			}
		case yaml.SequenceNode:
			for i := range node.Content {
				walk(node.Content[i], append(slices.Clone(path), strconv.Itoa(i)))
			}
		default: // nothing is inside
		}
	}
	walk(whole.node, nil)
}

// Whatever the bytes.
func FuzzQuick(f *testing.F) {
	cases, err := filepath.Glob("testdata/*.txtar")
	require.NoError(f, err)
	for _, file := range cases {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		for _, section := range archive.Files {
			documents, err := split(section.Data)
			if err != nil {
				continue // of a case that is refused for it
			}
			for _, doc := range documents {
				f.Add([]byte(doc.text))
			}
		}
	}
	f.Add([]byte(meta + "spec: {a: [1, -2, 0x10, 0o7, 017, 1_000, yes, ~, 1.5, {}, []], c: {<<: *a, d: 2}}\n"))
	f.Add([]byte(meta + "spec:\n  a:\n  - b: 1\n    c: |\n      d\n  -   e\n  - 'f'\n  g: \"h\"\n  i: {j: [k]}\n  l: m\n   n\n# o\np: 1Gi\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := split(data)
		if err != nil {
			return
		}
		for _, doc := range documents {
			sameAsBuilder(t, doc.text)
		}
	})
}
