package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Limits on setup-envtest: to say what can be downloaded, and to download it.
const (
	indexLimit    = 10 * time.Second
	downloadLimit = 3 * time.Minute
)

// indexVariable is the address of another index of setup-envtest, such as a mirror's.
const indexVariable = "WARMPOOL_ENVTEST_INDEX"

// downloadOnce has setup-envtest download etcd, kube-apiserver and kubectl when they are first asked for, and returns their
// folder. Where that fails it says why in the log and returns "", and they are built.
func (s *store) downloadOnce(index, download time.Duration) func(context.Context) string {
	var once sync.Once
	var dir string
	return func(ctx context.Context) string {
		once.Do(func() {
			var err error
			if dir, err = s.download(ctx, index, download); err != nil {
				_, _ = fmt.Fprintf(s.log, "no prebuilt etcd and kube-apiserver: %v\n", err) // the build reports a broken log
			}
		})
		return dir
	}
}

// download returns the folder of what setup-envtest has, or downloads. It asks for the index alone first: that a host
// cannot be reached shows sooner than the time that a download may take.
func (s *store) download(ctx context.Context, index, download time.Duration) (string, error) {
	version, err := s.version(kubernetes)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-n", "setup-envtest")
	cmd.Dir, cmd.Env = filepath.Join(s.source, "..", "..", "tools"), append(os.Environ(), "GOWORK=off")
	program, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build setup-envtest: %w", withStderr(err))
	}
	setup := func(limit time.Duration, args ...string) (string, error) {
		if address := os.Getenv(indexVariable); address != "" {
			args = append(args, "--index="+address)
		}
		return runWithin(ctx, limit, strings.TrimSpace(string(program)), append(args, version[:strings.LastIndex(version, ".")+1]+"x")...)
	}
	if dir, err := setup(index, "use", "--installed-only", "--print=path"); err == nil {
		return dir, nil
	}
	if _, err := setup(index, "list"); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(s.log, "downloading etcd and kube-apiserver %s\n", version[:strings.LastIndex(version, ".")]) // as above
	return setup(download, "use", "--print=path")
}

func runWithin(ctx context.Context, limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // for what it has started
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return "", fmt.Errorf("setup-envtest %s: %w", args[0], withStderr(err))
}
