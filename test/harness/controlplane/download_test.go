package controlplane

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/needs"
)

// On a machine that has no programs but can download them, from a server here that stands in for the public one, make run
// takes its tour within three minutes. The real setup-envtest downloads the programs that this machine has.
func TestMakeRunDownloads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("folders for caches and data are set by XDG variables on Linux only")
	}
	needs.Check(t, needs.ControlPlane, Ready(t.Context(), Options{}))
	paths, err := locate(t.Context(), Options{})
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "envtest.tar.gz")
	sum := pack(t, archive, paths[etcd], paths[apiServer])
	s, err := findStore(t.Context(), clusterComponents, nil)
	require.NoError(t, err)
	version, err := s.version(kubernetes)
	require.NoError(t, err)

	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/archive", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, archive) })
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "releases:\n  v%[1]s:\n    envtest-v%[1]s-%[2]s-%[3]s.tar.gz:\n      hash: %[4]s\n      selfLink: %[5]s/archive\n",
			version, runtime.GOOS, runtime.GOARCH, sum, server.URL)
	})

	goCache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	root := filepath.Join("..", "..", "..")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "tour"), "./test/integration/tour")
	compile.Dir = root // what this takes depends on what the machine does besides, and on its cache
	require.NoError(t, compile.Run())
	const mostTime = 3 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", "run", "ONCE=1")
	cmd.WaitDelay = time.Second
	cmd.Dir = root
	cache := t.TempDir()
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "XDG_DATA_HOME="+t.TempDir(), "KUBEBUILDER_ASSETS=",
		"GOCACHE="+strings.TrimSpace(string(goCache)), indexVariable+"="+server.URL+"/index.yaml")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "after %s:\n%s", time.Since(began), out)
	t.Logf("%s", time.Since(began).Round(time.Second))
	assert.Contains(t, string(out), "downloading etcd and kube-apiserver "+version[:strings.LastIndex(version, ".")])
	assert.NotContains(t, string(out), "building")
	for _, name := range []string{etcd, apiServer} {
		links, err := filepath.Glob(filepath.Join(cache, "warmpool", "controlplane", "*", name))
		require.NoError(t, err)
		assert.Len(t, links, 1, "the next run has %s in the cache", name)
	}
}

// pack makes an archive like those that setup-envtest downloads, and returns its checksum.
func pack(t *testing.T, archive string, programs ...string) string {
	t.Helper()
	file, err := os.Create(archive)
	require.NoError(t, err)
	sum := sha512.New()
	compressed, err := gzip.NewWriterLevel(io.MultiWriter(file, sum), gzip.NoCompression)
	require.NoError(t, err)
	packed := tar.NewWriter(compressed)
	for _, path := range programs {
		program, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, packed.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + filepath.Base(path), Mode: 0o755, Size: int64(len(program))}))
		_, err = packed.Write(program)
		require.NoError(t, err)
	}
	require.NoError(t, packed.Close())
	require.NoError(t, compressed.Close())
	require.NoError(t, file.Close())
	return fmt.Sprintf("%x", sum.Sum(nil))
}
