package controlplane

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Where setup-envtest cannot deliver, the program is built, and the log says why.
func TestFailingSetupEnvtest(t *testing.T) {
	const installed = "#!/bin/sh\ncase \"$*\" in *--installed-only*) exit 2 ;; esac\n"
	for name, c := range map[string]struct{ script, why string }{
		"no network":         {installed + "echo no such host >&2\nexit 2\n", "setup-envtest list: exit status 2:\nno such host"},
		"no answer":          {installed + "sleep 60\n", "setup-envtest list: no answer within 300ms"},
		"download fails":     {installed + "[ $1 = list ] && exit 0\necho cut off >&2\nexit 2\n", "setup-envtest use: exit status 2:\ncut off"},
		"download stalls":    {installed + "[ $1 = list ] && exit 0\nsleep 60\n", "setup-envtest use: no answer within 400ms"},
		"not to be executed": {"", "setup-envtest list: "},
		"has another":        {"#!/bin/sh\necho /nowhere\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			t.Setenv("FAKE_CALLS", filepath.Join(t.TempDir(), "calls"))
			t.Setenv("FAKE_ENVTEST", filepath.Join(bin, "setup-envtest"))
			t.Setenv("PATH", bin+":/usr/bin:/bin")
			write(t, filepath.Join(bin, "go"), fakeGo)
			write(t, filepath.Join(bin, "setup-envtest"), c.script)
			var log bytes.Buffer
			s, err := newStore(clusterComponents, "", "components", t.TempDir(), &log)
			require.NoError(t, err)
			s.prebuilt = s.downloadOnce(300*time.Millisecond, 400*time.Millisecond)
			for _, a := range artifacts(Options{}) {
				path, err := s.get(t.Context(), a)
				require.NoError(t, err)
				assert.Equal(t, "built\n", read(t, path))
			}
			if c.why != "" {
				assert.Contains(t, log.String(), "no prebuilt etcd and kube-apiserver: "+c.why)
				assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("no prebuilt")), "it is tried once")
			}
		})
	}
}

func TestReadyBuildsNothing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // os.UserCacheDir of Linux
	t.Setenv("HOME", t.TempDir())           // and of others
	t.Setenv("KUBEBUILDER_ASSETS", "")
	err := ready(t.Context(), clusterComponents, artifacts(Options{Scheduler: true}))
	require.ErrorContains(t, err, "not there yet: etcd, kube-apiserver, kube-scheduler; make test gets them")

	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	for _, name := range []string{etcd, apiServer, kubectl} {
		write(t, filepath.Join(assets, name), "")
	}
	require.NoError(t, Ready(t.Context(), Options{}))
	require.ErrorContains(t, Ready(t.Context(), Options{KWOK: true}), "not there yet: kwok, kwok-stages.yaml;")
	require.ErrorContains(t, NodesReady(t.Context()), "not there yet: kubelet;")
}

func TestProgress(t *testing.T) {
	var log bytes.Buffer
	p := &progress{log: &log, name: "etcd", all: 3, said: time.Now(), interval: time.Hour}
	for _, text := range []string{"one\ntw", "o\n# four\nfour.go:1:2: wrong\n"} {
		_, err := p.Write([]byte(text))
		require.NoError(t, err)
	}
	assert.Empty(t, log.String(), "not yet")
	p.interval = 0
	for _, text := range []string{"three\n", "more\n"} {
		_, err := p.Write([]byte(text))
		require.NoError(t, err)
	}
	assert.Equal(t, "  etcd: 3 of 3 packages compiled\n  etcd: 4 of 4 packages compiled\n", log.String())
	assert.Equal(t, "# four\nfour.go:1:2: wrong\n", p.other.String())
}
