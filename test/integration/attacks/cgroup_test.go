package attacks_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/needs"
)

// memoryGroup is a memory cgroup (version 1) with a limit. A process that exceeds it is killed by the kernel.
type memoryGroup struct{ dir string }

func newMemoryGroup(t *testing.T, limit int64) memoryGroup {
	t.Helper()
	const hierarchy = "/sys/fs/cgroup/memory"
	_, err := os.Stat(hierarchy)
	if err == nil && os.Geteuid() != 0 {
		err = errors.New("a memory limit needs root")
	}
	needs.Check(t, needs.RealNodes, err)
	g := memoryGroup{filepath.Join(hierarchy, fmt.Sprintf("warmpool-attacks-%d", os.Getpid()))}
	require.NoError(t, os.Mkdir(g.dir, 0o755))
	t.Cleanup(func() { assert.NoError(t, os.Remove(g.dir), "a process is left") })
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "memory.limit_in_bytes"), []byte(strconv.FormatInt(limit, 10)), 0o600))
	return g
}

// wrap writes a program that enters the cgroup and then is the binary.
func (g memoryGroup) wrap(t *testing.T, dir, binary string) string {
	t.Helper()
	script := filepath.Join(dir, "warmpool-limited")
	text := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s \"$@\"\n", g.dir, binary)
	require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
	return script
}
