package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// file is a configuration whose only pool has this name.
func file(pool string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\npools: [{name: %s, nodePools: [a]}]\n", APIVersion, Kind, pool)
}

// watch returns a Watcher that tells what it calls as "change POOL" and "error TEXT".
func watch(t *testing.T, path string) (*Watcher, <-chan string) {
	t.Helper()
	calls := make(chan string, 100)
	w, err := NewWatcher(path, nil,
		func(c *WarmPoolConfiguration) { calls <- "change " + c.Pools[0].Name },
		func(err error) { calls <- "error " + err.Error() })
	require.NoError(t, err)
	return w, calls
}

// start runs the Watcher until the returned function is called, which also waits for its end.
func start(t *testing.T, w *Watcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	return func() {
		cancel()
		assert.NoError(t, <-done)
	}
}

func next(t *testing.T, calls <-chan string) string {
	t.Helper()
	select {
	case call := <-calls:
		return call
	case <-time.After(20 * time.Second):
		require.Fail(t, "the watcher calls nobody")
		return ""
	}
}

// drain returns the calls so far.
func drain(calls <-chan string) []string {
	var all []string
	for len(calls) > 0 {
		all = append(all, <-calls)
	}
	return all
}

func write(t *testing.T, path, data string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
}

func TestNewWatcherRefusesABadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	_, err := NewWatcher(path, nil, nil, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.EqualError(t, err, fmt.Sprintf("read configuration %s: open %s: no such file or directory", path, path))

	write(t, path, file("''"))
	_, err = NewWatcher(path, nil, nil, nil)
	assert.EqualError(t, err, fmt.Sprintf("read configuration %s: line 3: pools[0].name: Required value: must not be empty", path))

	write(t, path, "")
	_, err = NewWatcher(path, nil, nil, nil)
	assert.EqualError(t, err, fmt.Sprintf("read configuration %s: the configuration is empty; it must have apiVersion: %s, kind: %s and at least one pool", path, APIVersion, Kind))

	write(t, path, file("a")+"#"+strings.Repeat("x", MaxSize))
	_, err = NewWatcher(path, nil, nil, nil)
	assert.EqualError(t, err, fmt.Sprintf("read configuration %s: the configuration is larger than 1 MiB (1048576 bytes); remove what does not belong to it", path))
}

// TestReload goes through the states of a file, looking several times at each.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, file("a"))
	w, calls := watch(t, path)
	first := w.Current()

	bad := "error the configuration in force stays: read configuration " + path + ": line 3: "
	for _, step := range []struct {
		data  string // "" removes the file
		call  string
		force string
	}{
		{file("a"), "", "a"},
		{file("b"), "change b", "b"},
		{file("b c"), bad + `pools[0].name: Invalid value: "b c": must be at most 63 letters, digits, -, _ and ., with a letter or digit at both ends`, "b"},
		{file("''"), bad + "pools[0].name: Required value: must not be empty", "b"},
		{file("b"), "change b", "b"}, // The caller learns that the fault is gone.
		{"", "error the configuration in force stays: read configuration " + path + ": open " + path + ": no such file or directory", "b"},
		{file("c"), "change c", "c"},
	} {
		if step.data == "" {
			require.NoError(t, os.Remove(path))
		} else {
			write(t, path, step.data)
		}
		for range 3 {
			w.reload()
		}
		var want []string
		if step.call != "" {
			want = []string{step.call}
		}
		assert.Equal(t, want, drain(calls), step.data)
		assert.Equal(t, step.force, w.Current().Pools[0].Name, step.data)
	}
	assert.Equal(t, "a", first.Pools[0].Name, "a configuration that was handed out stays as it was")
}

// mount writes the file as the kubelet mounts a ConfigMap: a link into a folder that is swapped as a whole.
func mount(t *testing.T, dir, version, data string) {
	t.Helper()
	require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
	write(t, filepath.Join(dir, version, "config.yaml"), data)
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if old == "" {
		require.NoError(t, os.Symlink(filepath.Join("..data", "config.yaml"), filepath.Join(dir, "config.yaml")))
		return
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir, old)))
}

func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "..1", file("a"))
	w, calls := watch(t, filepath.Join(dir, "config.yaml"))
	w.poll = time.Hour // Events alone must do.
	mount(t, dir, "..2", file("before-start"))
	stop := start(t, w)
	defer stop()
	assert.Equal(t, "change before-start", next(t, calls))

	mount(t, dir, "..3", file("b"))
	assert.Equal(t, "change b", next(t, calls))
	mount(t, dir, "..4", "pools: [")
	assert.Contains(t, next(t, calls), "error the configuration in force stays: ")
	assert.Equal(t, "b", w.Current().Pools[0].Name)
	mount(t, dir, "..5", file("c"))
	assert.Equal(t, "change c", next(t, calls))
	assert.Equal(t, "c", w.Current().Pools[0].Name)
	assert.Empty(t, drain(calls))
}

// TestWatchPoll changes the file where no event in its folder tells so.
func TestWatchPoll(t *testing.T) {
	target := filepath.Join(t.TempDir(), "elsewhere.yaml")
	write(t, target, file("a"))
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.Symlink(target, path))
	w, calls := watch(t, path)
	w.poll = time.Millisecond
	stop := start(t, w)
	defer stop()
	// In one step, or the poll may see the file half written.
	write(t, target+".new", file("b"))
	require.NoError(t, os.Rename(target+".new", target))
	assert.Equal(t, "change b", next(t, calls))
}

func TestStartLeavesNothingBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, file("a"))
	w, _ := watch(t, path)
	assert.False(t, w.NeedLeaderElection())
	watching := func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "fsnotify")
	}
	stop := start(t, w)
	require.Eventually(t, watching, 20*time.Second, time.Millisecond)
	stop()
	require.Eventually(t, func() bool { return !watching() }, 20*time.Second, time.Millisecond)
}
