package certs

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// A replaced pair of files is served without a restart, and the last good one as
// long as the files are away.
func TestFilesAreWatched(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	put := func() *x509.Certificate {
		cert, key := newCA(t, "files", -3650*day, 36500*day, func(c *x509.Certificate) { c.DNSNames = []string{"files"} })
		require.NoError(t, os.WriteFile(keyFile, key, 0o600))
		require.NoError(t, os.WriteFile(certFile, pemOf(cert), 0o600))
		return cert
	}
	first := put()

	certs, err := New(Options{Mode: ModeFiles, Dir: dir})
	require.NoError(t, err)
	address := freeAddress(t)
	options := webhook.Options{Host: "127.0.0.1", Port: port(t, address)}
	certs.Configure(&options)
	done := make(chan error, 1)
	go func() { done <- webhook.NewServer(options).Start(t.Context()) }()
	t.Cleanup(func() { assert.NoError(t, <-done) })
	serves := func(want *x509.Certificate) func() bool {
		return func() bool { _, err := dial(address, "files", pemOf(want)); return err == nil }
	}

	require.Eventually(t, serves(first), soon, 10*time.Millisecond)
	second := put()
	require.Eventually(t, serves(second), soon, 10*time.Millisecond)

	require.NoError(t, os.Remove(certFile))
	require.NoError(t, os.Remove(keyFile))
	require.True(t, serves(second)(), "the last good pair is served while the files are away")
	third := put()
	require.Eventually(t, serves(third), soon, 10*time.Millisecond)
}
