package phrase_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/phrase"
)

func TestCut(t *testing.T) {
	assert.Equal(t, "four", phrase.Cut("four", 4))
	assert.Equal(t, "fou…", phrase.Cut("four", 3))
	assert.Equal(t, "a…", phrase.Cut("aéé", 2), "never half a character")
	assert.Equal(t, "…", phrase.Cut("\xff\xff\xff", 2), "nor what is none")
}

func TestCount(t *testing.T) {
	assert.Equal(t, "0 pods", phrase.Count(0, "pod"))
	assert.Equal(t, "1 pod", phrase.Count(1, "pod"))
	assert.Equal(t, "2 pods", phrase.Count(2, "pod"))
}

func TestSome(t *testing.T) {
	assert.Empty(t, phrase.Some(nil, 2))
	assert.Equal(t, "a, b", phrase.Some([]string{"a", "b"}, 2))
	assert.Equal(t, "a, b and 1 more", phrase.Some([]string{"a", "b", "c"}, 2))
}
