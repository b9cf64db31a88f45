package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"overprovisioning/spaces-placeholder-gpu: größer als 3 × 4 → 12\n\tx": "overprovisioning/spaces-placeholder-gpu: größer als 3 × 4 → 12\n\tx",
		"[::1]:5000/a::b # ## c [d] #[e":                                      "[::1]:5000/a::b # ## c [d] #[e",
		"a\n::error::x\n  ::warning::y":                                       "a\n:\\u003aerror::x\n  :\\u003awarning::y",
		"x ##[error]y":                                                        "x ##\\u005berror]y",
		"x ##vso[task.complete]":                                              "x ##vso\\u005btask.complete]",
		"###teamcity[x":                                                       "###teamcity\\u005bx",
		"\x1b[31mred\r\x1b[0Ksection_start:1":                                 "\\u001b[31mred\\u000d\\u001b[0Ksection_start:1",
		"\u202egnp.\u2066\u00a0::x\ufeff::error::":                            "\\u202egnp.\\u2066\\u00a0:\\u003ax\\ufeff:\\u003aerror::",
		"\x9b31m \xff\U000e0041":                                              "\\ufffd31m \\ufffd\\udb40\\udc41",
	} {
		if !utf8.ValidString(text) {
			want = strings.ReplaceAll(want, `\ufffd`, "\ufffd") // which can be printed
		}
		var whole, bytewise bytes.Buffer
		_, err := newQuoted(&whole).Write([]byte(text))
		require.NoError(t, err)
		_, err = io.Copy(newQuoted(&bytewise), iotest.OneByteReader(strings.NewReader(text)))
		require.NoError(t, err)
		assert.Equal(t, want, whole.String(), "%q", text)
		assert.Equal(t, want, bytewise.String(), "%q", text)
	}
}

func FuzzQuoted(f *testing.F) {
	f.Add("::error::x", 3)
	f.Add("a ##vso[x]\x1b[1m", 2)
	f.Fuzz(func(t *testing.T, text string, at int) {
		var out bytes.Buffer
		q := newQuoted(&out)
		at = min(max(at, 0), len(text))
		_, _ = q.Write([]byte(text[:at]))
		_, _ = q.Write([]byte(text[at:]))
		harmless(t, out.String())
		before, err := json.Marshal(text)
		require.NoError(t, err)
		out.Reset()
		_, _ = newQuoted(&out).Write(before)
		var after, same string
		require.NoError(t, json.Unmarshal(out.Bytes(), &after))
		require.NoError(t, json.Unmarshal(before, &same))
		assert.Equal(t, same, after, "JSON has the same content")
	})
}

// harmless is output that steers neither a terminal nor a CI system.
func harmless(t *testing.T, output string) {
	t.Helper()
	for _, r := range output {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%U in %q", r, output)
		}
	}
	for line := range strings.Lines(output) {
		assert.False(t, strings.HasPrefix(strings.TrimSpace(line), "::"), "%q", line)
		assert.NotContains(t, line, "##[")
		assert.NotContains(t, line, "##vso[")
	}
}
