package certs

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// A pair of files may come late, is served without a restart when it is replaced,
// and as long as the files are away.
func TestFilesAreWatched(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	put := func() *x509.Certificate {
		cert, key := makeCA(t, "files", -3650*day, 36500*day, func(c *x509.Certificate) { c.DNSNames = []string{"files"} })
		require.NoError(t, os.WriteFile(keyFile, key, 0o600))
		require.NoError(t, os.WriteFile(certFile, pemOf(cert), 0o600))
		return cert
	}

	certs, err := New(Options{Mode: ModeFiles, Dir: dir})
	require.NoError(t, err)
	address := freeAddress(t)
	options := webhook.Options{Host: "127.0.0.1", Port: port(t, address)}
	certs.Configure(&options)
	done := make(chan error, 1)
	go func() { done <- webhook.NewServer(options).Start(t.Context()) }()
	go func() { done <- certs.files.Start(t.Context()) }()
	t.Cleanup(func() { assert.NoError(t, errors.Join(<-done, <-done)) })
	serves := func(want *x509.Certificate) func() bool {
		return func() bool { _, err := dial(address, "files", pemOf(want)); return err == nil }
	}

	require.Eventually(t, func() bool {
		_, err := certs.source.GetCertificate(nil)
		return err != nil && strings.Contains(err.Error(), "put a pair into "+certFile+" and "+keyFile)
	}, soon, 10*time.Millisecond)
	first := put()
	require.Eventually(t, serves(first), soon, 10*time.Millisecond)
	second := put()
	require.Eventually(t, serves(second), soon, 10*time.Millisecond)

	require.NoError(t, os.Remove(certFile))
	require.NoError(t, os.Remove(keyFile))
	require.Never(t, func() bool { return !serves(second)() }, 3*time.Second, 100*time.Millisecond,
		"the last good pair is not served while the files are away")
	third := put()
	require.Eventually(t, serves(third), soon, 10*time.Millisecond)
}
