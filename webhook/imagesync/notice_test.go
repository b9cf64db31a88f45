package imagesync

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// An Event whose note has more than 1024 bytes is refused.
func TestNoteIsCutByBytes(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("a", 1000), strings.Repeat("a", 1001), strings.Repeat("é", 1000), strings.Repeat("本", 400)} {
		got := note(text)
		assert.LessOrEqual(t, len(got), 1024)
		assert.True(t, utf8.ValidString(got))
		assert.True(t, got == text || len(text) > 1000 && strings.HasPrefix(text, strings.TrimSuffix(got, "…")) && strings.HasSuffix(got, "…"))
	}
}
