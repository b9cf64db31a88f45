package follow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/controller/follow"
)

func TestChangesComeTogether(t *testing.T) {
	signal := follow.New()
	assert.Empty(t, signal)
	for range 3 {
		signal.Changed() // would block permanently if it waited
	}
	<-signal
	assert.Empty(t, signal)
	signal.Changed()
	assert.Len(t, signal, 1)
}
