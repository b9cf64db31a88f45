package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// files serves the pair in a folder. The webhook server of controller-runtime
// would do that by itself, but ends when the pair is not there at its start, and
// stops to look for a new one when the pair goes away soon after.
type files struct {
	cert, key string

	watcher atomic.Pointer[certwatcher.CertWatcher] // nil until there is a first pair
	failure atomic.Pointer[error]                   // why there is none yet
}

func newFiles(dir string) *files {
	return &files{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
}

// Start waits for a first pair and then follows it, until ctx ends.
func (f *files) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		watcher, err := certwatcher.New(f.cert, f.key)
		if err != nil {
			f.failure.Store(&err)
			return false, nil
		}
		f.watcher.Store(watcher)
		return true, nil
	})
	// The watcher gives up when it cannot watch the files for ten seconds.
	for err == nil && ctx.Err() == nil {
		if failure := f.watcher.Load().Start(ctx); failure != nil && ctx.Err() == nil {
			log.Log.WithName("certs").Error(failure, "The last good pair stays in use", "certificate", f.cert, "key", f.key)
		}
	}
	return nil // ctx ended
}

// NeedLeaderElection returns false: every replica serves.
func (f *files) NeedLeaderElection() bool { return false }

// GetCertificate is for tls.Config. It returns the last good pair, and fails until there is one.
func (f *files) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if watcher := f.watcher.Load(); watcher != nil {
		return watcher.GetCertificate(hello)
	}
	if failure := f.failure.Load(); failure != nil {
		return nil, fmt.Errorf("no serving certificate yet: put a pair into %s and %s: %w", f.cert, f.key, *failure)
	}
	return nil, fmt.Errorf("no serving certificate yet: %s and %s have not been read", f.cert, f.key)
}
