package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What blocks reads without YAML's parser, or with its help for single values, is what the parser reads, at its lines.
func TestBlocksReadAsTheParser(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"as kubectl writes":     {meta + "spec:\n  containers:\n  - args:\n    - --x=1\n    - \"2\"\n    image: r.example/a:1\n    resources: {}\n  - name: b\n    ports: []\n  m: 3\n  q: 100m\n", true},
		"sequences further in":  {meta + "a:\n    -   b: 1\n        c: 2\n    -   d\ne: null\nf:\ng: 'x'\n", true},
		"comments":              {"# one\n" + meta + "\n  # two\na: # three\n  b: 1\nc: 1 # four\n# five\n", true},
		"long scalars":          {meta + "a: |\n  b: 1\n\n  - c\n\nd: >-\n  x\n  y\ne: one\n  two\nf: \"one\n  two\"\ng:\n  alone\nh:\n- |2\n    x\n- one\n  two\n- - a\n  - b\n", true},
		"flow":                  {meta + "a: {b: [1,\n  {c: 2}], yes: no}\ne:\n- {f: 1}\n- [g]\n- [h,\n   i]\n", false},
		"flow of strings":       {meta + "a: {b: [1,\n  {c: 2}], d: no}\ne:\n- {f: 1}\n- [g]\n- [h,\n   i]\n", true},
		"hard scalars":          {meta + "a: [yes, 0x1]\nb: 010\nc: 2026-01-02\nd: 1_000\ne: \"\\u00e9\"\nf: 'it''s'\ng: ÿ\nh: -0\ni: ~\nj: on\nk: 1e3m\n", true},
		"keys":                  {meta + "f:x: {}\n\"a: b\": 1\n'c': 2\na/b.c: 3\nk:{\"x\":1}: {}\n", false},
		"good keys":             {meta + "f:x: {}\n'c': 2\na/b.c: 3\nk:{\"x\":1}: {}\n", true},
		"a key twice":           {meta + "a: {b: 1}\na: {c: 1}\n", true},
		"anchors within":        {meta + "a: &x\n  b: &y 1\n  c: [*y]\n", true},
		"anchors across":        {meta + "a: &x 1\nb: *x\n", false},
		"a float":               {meta + "a: 1.5\n", false},
		"keys that may be none": {meta + "n: 1\n", false},
		"keys that are none":    {meta + "true: 1\n", false},
		"too far out":           {meta + "a:\n  b: 1\n c: 2\n", false},
		"too far in":            {meta + "a: 1\n  b: 1\n", false},
		"two in a line":         {meta + "a: b: c\n", false},
		"a tab":                 {meta + "a:\n\tb: 1\n", false},
		"a carriage return":     {meta + "a: b\rc: d\n", false},
		"a dash alone":          {meta + "a:\n-\n  b: 1\n", false},
		"not a mapping":         {"- a\n", false},
		"another document":      {meta + "...\na: 1\n", false},
		"nothing":               {"\n# a\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := readBlocks(c.text, false)
			assert.Equal(t, c.ok, ok)
			sameAsBuilder(t, c.text)
		})
	}
}
