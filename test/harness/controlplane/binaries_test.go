package controlplane

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeGo stands for the go command: "build … -o FILE" writes FILE, "mod download" answers with the folder in
// $FAKE_MODULE, "list" with two packages, and "tool" with the program $FAKE_ENVTEST.
const fakeGo = `#!/bin/sh
echo "$@" >> "$FAKE_CALLS"
case "$1" in
mod) echo "{\"Dir\": \"$FAKE_MODULE\"}" ;;
list) printf 'one\ntwo\n' ;;
tool) [ -z "$FAKE_ENVTEST" ] || echo "$FAKE_ENVTEST" ;;
build) while [ "$1" != -o ]; do shift; done; printf 'one\ntwo\n' >&2; echo built > "$2" ;;
esac
`

func TestLookupOrder(t *testing.T) {
	assets, envtest, bin := t.TempDir(), t.TempDir(), t.TempDir()
	calls := filepath.Join(t.TempDir(), "calls")
	t.Setenv("FAKE_CALLS", calls)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	write(t, filepath.Join(bin, "go"), fakeGo)

	var log bytes.Buffer
	userCache := t.TempDir()
	s, err := newStore(clusterComponents, assets, "components", userCache, &log)
	require.NoError(t, err)
	server := artifacts(Options{})[1]
	require.Equal(t, apiServer, server.name)

	built, err := s.get(t.Context(), server)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(s.cache, apiServer), built, "with nothing there it is built into the cache")
	assert.Regexp(t, `building kube-apiserver .*\n  kube-apiserver: 2 of 2 packages compiled\n$`, log.String())
	assert.Contains(t, read(t, calls), "k8s.io/kubernetes/cmd/kube-apiserver")

	require.NoError(t, os.Remove(built))
	t.Setenv("FAKE_ENVTEST", filepath.Join(bin, "setup-envtest"))
	write(t, filepath.Join(bin, "setup-envtest"), "#!/bin/sh\necho \"$@\" >> \"$FAKE_CALLS\"\necho "+envtest+"\n")
	write(t, filepath.Join(envtest, apiServer), "prebuilt")
	s, err = newStore(clusterComponents, assets, "components", userCache, &log)
	require.NoError(t, err)
	found, err := s.get(t.Context(), server)
	require.NoError(t, err)
	assert.Equal(t, "prebuilt", read(t, found), "setup-envtest comes before a build")
	assert.Regexp(t, `(?m)^use --installed-only --print=path 1\.\d+\.x$`, read(t, calls))

	require.NoError(t, os.Remove(found))
	write(t, built, "cached")
	found, err = s.get(t.Context(), server)
	require.NoError(t, err)
	assert.Equal(t, "cached", read(t, found), "the cache comes before setup-envtest")

	write(t, filepath.Join(assets, apiServer), "")
	found, err = s.get(t.Context(), server)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(assets, apiServer), found, "KUBEBUILDER_ASSETS comes first")
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	write(t, filepath.Join(bin, "go"), "#!/bin/sh\necho no space left >&2\nexit 1\n")
	s, err := newStore(clusterComponents, "", "components", t.TempDir(), &bytes.Buffer{})
	require.NoError(t, err)
	_, err = s.get(t.Context(), artifacts(Options{})[0])
	require.ErrorContains(t, err, "no space left")
	left, err := os.ReadDir(s.cache)
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "lock", left[0].Name())
}

func TestDataFileIsJoinedOnce(t *testing.T) {
	bin, module := t.TempDir(), t.TempDir()
	calls := filepath.Join(t.TempDir(), "calls")
	t.Setenv("FAKE_CALLS", calls)
	t.Setenv("FAKE_MODULE", module)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	write(t, filepath.Join(bin, "go"), fakeGo)
	write(t, filepath.Join(module, "a", "one.yaml"), "kind: One\n\n")
	write(t, filepath.Join(module, "a", "two.yaml"), "kind: Two\n")
	write(t, filepath.Join(module, "b", "three.yaml"), "kind: Three\n")
	data := artifact{name: "data.yaml", module: "example.com/module", globs: []string{"b/*.yaml", "a/*.yaml"}}

	s, err := newStore(clusterComponents, "", "components", t.TempDir(), &bytes.Buffer{})
	require.NoError(t, err)
	for range 2 {
		path, err := s.get(t.Context(), data)
		require.NoError(t, err)
		assert.Equal(t, "---\nkind: Three\n---\nkind: One\n---\nkind: Two\n", read(t, path))
	}
	assert.Equal(t, "mod download -json example.com/module\n", read(t, calls))

	data.name, data.globs = "other.yaml", []string{"c/*.yaml"}
	_, err = s.get(t.Context(), data)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestVersionKeyFollowsTheSums(t *testing.T) {
	source, userCache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(source, "go.mod"), "module m\n\nrequire k8s.io/kubernetes v1.2.3 // indirect\n")
	write(t, filepath.Join(source, "go.sum"), "one")
	first, err := newStore(clusterComponents, "", source, userCache, nil)
	require.NoError(t, err)
	assert.Regexp(t, `/warmpool/controlplane/1\.2\.3-[0-9a-f]{8}$`, first.cache)
	write(t, filepath.Join(source, "go.sum"), "two")
	second, err := newStore(clusterComponents, "", source, userCache, nil)
	require.NoError(t, err)
	assert.NotEqual(t, first.cache, second.cache)
}

func TestEveryComponentIsPinned(t *testing.T) {
	s, err := newStore(clusterComponents, "", "components", t.TempDir(), nil)
	require.NoError(t, err)
	for _, a := range append(artifacts(Options{ControllerManager: true, Scheduler: true, KWOK: true, Karpenter: true}), kubeletArtifact) {
		_, err := s.version(a.module)
		assert.NoError(t, err, a.name)
	}
	s, err = newStore(nodeComponents, "", "nodecomponents", t.TempDir(), nil)
	require.NoError(t, err)
	for _, a := range nodeArtifacts {
		_, err := s.version(a.module)
		assert.NoError(t, err, a.name)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}
