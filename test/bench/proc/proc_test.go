package proc_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/bench/proc"
)

func TestCPUIsThatOfGetrusage(t *testing.T) {
	var usage syscall.Rusage
	for usage.Utime.Nano()+usage.Stime.Nano() < int64(300*time.Millisecond) { // enough to be seen in ticks
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	}
	cpu, err := proc.CPU(os.Getpid())
	require.NoError(t, err)
	assert.InDelta(t, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()).Seconds(), cpu.Seconds(), .2)
}

func TestMemoryGrowsWithWhatIsUsed(t *testing.T) {
	const more = 64 << 20
	before, _, err := proc.Memory(os.Getpid())
	require.NoError(t, err)
	used := make([]byte, more)
	for i := range used {
		used[i] = 1
	}
	now, most, err := proc.Memory(os.Getpid())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, now-before, more>>11) // half of it is enough: other memory may have been given back
	assert.GreaterOrEqual(t, most, now)
	assert.Equal(t, byte(1), used[more-1])
}

func TestNoProcess(t *testing.T) {
	const none = 1 << 30
	_, err := proc.CPU(none)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = proc.Memory(none)
	require.ErrorIs(t, err, os.ErrNotExist)
}
