package manifests_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/controlplane/registry"
	"warmpool.sh/test/harness/install"
)

// digests is a copy of manifests/base whose images are in a registry on this machine, and the script that pins them.
type digests struct {
	dir, crane, host string
	registry         *registry.Registry
}

func newDigests(t *testing.T) digests {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	d := digests{dir: t.TempDir(), registry: registry.New()}
	server := httptest.NewServer(d.registry)
	t.Cleanup(server.Close)
	d.host = server.Listener.Addr().String()
	require.NoError(t, os.CopyFS(filepath.Join(d.dir, "base"), os.DirFS(filepath.Join(root, "manifests", "base"))))
	script, err := os.ReadFile(filepath.Join(root, "manifests", "digests.sh"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "digests.sh"), script, 0o700))
	values := strings.NewReplacer("registry.k8s.io", d.host).Replace(d.read(t, "values.yaml"))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "base", "values.yaml"), []byte(values), 0o600))
	d.crane = "go tool -modfile=" + filepath.Join(root, "test", "harness", "tools", "go.mod") + " crane"
	return d
}

func (d digests) read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(d.dir, "base", file))
	require.NoError(t, err)
	return string(content)
}

// push gives a tag in the registry another image, and returns its digest.
func (d digests) push(t *testing.T, image, seed string) string {
	t.Helper()
	made, err := registry.NewImage([]byte(image), 0, seed)
	require.NoError(t, err)
	d.registry.Push(d.host+"/"+image, made)
	return made.Digest()
}

func (d digests) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(d.dir, "digests.sh"), args...)
	cmd.Env = append(os.Environ(), "CRANE="+d.crane)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const (
	pause = "pause:3.10.1"
	cpa   = "cpa/cluster-proportional-autoscaler:v1.10.3"
	own   = "team/warmpool:v0.1.0"
)

// The script writes the digests that a registry has, over those that it wrote before, and what kustomize makes of them runs
// these images.
func TestDigestsAreWritten(t *testing.T) {
	t.Parallel()
	d := newDigests(t)
	before := d.read(t, "values.yaml")
	for _, seed := range []string{"1", "2"} { // tags that move
		pauseDigest, cpaDigest, ownDigest := d.push(t, pause, "pause"+seed), d.push(t, cpa, "cpa"+seed), d.push(t, own, "own"+seed)
		out, err := d.run(t, d.host+"/"+own)
		require.NoError(t, err, out)
		want := strings.NewReplacer(pause, pause+"@"+pauseDigest, cpa, cpa+"@"+cpaDigest).Replace(before)
		assert.Equal(t, want, d.read(t, "values.yaml"))

		objects, err := install.Render(filepath.Join(d.dir, "base"))
		require.NoError(t, err)
		rendered, err := json.Marshal(objects)
		require.NoError(t, err)
		for _, image := range []string{pause + "@" + pauseDigest, cpa + "@" + cpaDigest, "team/warmpool@" + ownDigest} {
			assert.Contains(t, string(rendered), `"image":"`+d.host+"/"+image+`"`)
		}
	}
}

// Where an image, or the registry, is not to be found, nothing is written and nothing is made up.
func TestDigestsAreNotMadeUp(t *testing.T) {
	t.Parallel()
	d := newDigests(t)
	before, kustomization := d.read(t, "values.yaml"), d.read(t, "kustomization.yaml")
	for _, has := range []string{"", pause, cpa} {
		if has != "" {
			d.push(t, has, "1")
		}
		missing := map[string]string{"": pause, pause: cpa, cpa: own}[has]
		out, err := d.run(t, d.host+"/"+own)
		require.Error(t, err)
		assert.Contains(t, out, "the digest of "+d.host+"/"+missing+" cannot be looked up: no file is changed")
		assert.Equal(t, before, d.read(t, "values.yaml"))
		assert.Equal(t, kustomization, d.read(t, "kustomization.yaml"))
	}
	d.crane = "echo sha256:1 #"
	out, err := d.run(t)
	require.Error(t, err)
	assert.Contains(t, out, "answers with no digest but: sha256:1")
	assert.Equal(t, before, d.read(t, "values.yaml"))
}
