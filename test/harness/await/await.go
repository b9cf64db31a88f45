// Package await waits in tests until something holds, and fails with what did not hold at the last look.
package await

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const step = 50 * time.Millisecond

// NoProblem waits until problem has nothing to say.
func NoProblem(t *testing.T, limit time.Duration, what string, problem func() string) {
	t.Helper()
	last := ""
	ok := assert.Eventually(t, func() bool { last = problem(); return last == "" }, limit, step, what)
	require.True(t, ok, "%s: %s", what, last)
}

// NoError waits until get gives no error.
func NoError(t *testing.T, limit time.Duration, what string, get func() error) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.NoError(c, get(), what) }, limit, step)
}
