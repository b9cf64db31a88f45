package spelling_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/spelling"
)

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"ab", "ba", 2},
		{"deploymnt", "deployment", 1}, {"node", "node", 0},
	} {
		edits, ok := spelling.Edits(test.a, test.b, test.want)
		assert.True(t, ok, "%s %s", test.a, test.b)
		assert.Equal(t, test.want, edits, "%s %s", test.a, test.b)
		_, ok = spelling.Edits(test.a, test.b, test.want-1)
		assert.False(t, ok, "%s %s", test.a, test.b)
	}
	long := strings.Repeat("a", 1<<20)
	_, ok := spelling.Edits("a", long, 2)
	assert.False(t, ok)
}
