package manifest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	"k8s.io/cli-runtime/pkg/resource"
)

const meta = "apiVersion: v1\nkind: Pod\nmetadata: {name: w}\n"

// What is read is what kubectl reads.
func TestDecodesAsKubectl(t *testing.T) {
	for name, text := range map[string]string{
		"plain":              meta + "spec: {a: [1, -2, 0x10, 0o7, 017, 1_000, yes, 'yes', ~, null, \"\", {}, [], \"\\u00e9\"]}\n",
		"times":              meta + "spec: {creationTimestamp: 2026-01-02T03:04:05Z, date: 2026-01-02}\n",
		"block scalars":      meta + "spec:\n  a: |+\n    x\n\n  b: >-\n    y\n    z\n",
		"anchors":            meta + "spec: {a: &a {b: [1]}, c: *a, d: [*a, *a]}\n",
		"the last counts":    meta + "spec: {a: 1}\nspec: {b: 2}\n",
		"largest integer":    meta + "spec: {a: 9223372036854775807}\n",
		"JSON":               `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"w"},"spec":{"a":1,"b":1.0,"c":1e3,"d":9223372036854775808}}`,
		"JSON list":          `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"}]}`,
		"list":               "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: Pod}]\n",
		"list of its kind":   "apiVersion: v1\nkind: PodList\nitems:\n- {metadata: {name: a}}\n",
		"list of nothing":    "apiVersion: v1\nkind: List\nitems: null\n",
		"merge":              meta + "spec: {a: &a {b: 1}, c: {<<: *a, d: 2}}\n",
		"floats":             meta + "spec: {a: 1.0, b: 1e3, c: 18446744073709551615}\n",
		"not a number":       meta + "spec: {a: .nan}\n",
		"other keys":         meta + "spec: {1: a, true: b, 1.5: c}\n",
		"binary":             meta + "spec: {a: !!binary /w==}\n",
		"explicit timestamp": meta + "spec: {a: !!timestamp 2026-01-02}\n",
		"flow YAML":          "{apiVersion: v1, kind: Pod, metadata: {name: w}}",
		"nothing":            "# a comment\n",
		"broken":             "a: [",
	} {
		t.Run(name, func(t *testing.T) { sameAsKubectl(t, text) })
	}
}

func sameAsKubectl(t *testing.T, text string) {
	t.Helper()
	got, empty, err := decode(document{text: text})
	infos, refused := resource.NewLocalBuilder().Unstructured().ContinueOnError().Stream(strings.NewReader(text), "stream").Do().Infos()
	if refused != nil {
		return // check comes later here, and says more
	}
	var want []item
	for _, info := range infos {
		want, refused = flatten(want, info.Object, "")
		if refused != nil {
			require.Error(t, err)
			return
		}
	}
	require.NoError(t, err)
	assert.Equal(t, len(infos) == 0, empty)
	assert.Equal(t, want, got)
}

// Whatever the bytes.
func FuzzDecode(f *testing.F) {
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
			sameAsKubectl(t, doc.text)
		}
	})
}
