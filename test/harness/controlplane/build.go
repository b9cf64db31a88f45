package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// make puts a into the cache. Test processes run side by side, so one works and
// the others wait for its result.
func (s *store) make(ctx context.Context, a artifact, target string) (err error) {
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(s.cache, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if exists(target) {
		return nil
	}
	temp, err := os.MkdirTemp(s.cache, "new-")
	if err != nil {
		return fmt.Errorf("make a folder in the cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	made := filepath.Join(temp, a.name)
	if a.main == "" {
		err = s.join(ctx, a, made)
	} else {
		err = s.link(ctx, a, made)
	}
	if err != nil {
		return err
	}
	return os.Rename(made, target)
}

// link makes target a link to what setup-envtest has, or builds it.
func (s *store) link(ctx context.Context, a artifact, target string) error {
	if a.envtest {
		if dir := s.prebuilt(ctx); dir != "" && exists(filepath.Join(dir, a.name)) {
			return os.Symlink(filepath.Join(dir, a.name), target)
		}
	}
	return s.build(ctx, a, target)
}

// build compiles a program.
func (s *store) build(ctx context.Context, a artifact, target string) error {
	own, err := s.version(a.module)
	if err != nil {
		return err
	}
	flags, err := s.buildFlags()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.log, "building %s %s from source (first time only, about %d minutes on 2 cores)\n",
		a.name, own, a.minutes); err != nil {
		return fmt.Errorf("report progress: %w", err)
	}
	main := path.Join(a.module, a.main)
	stale, err := s.goCommand(ctx, slices.Concat([]string{"list", "-mod=readonly"}, flags, []string{"-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", main})...)
	if err != nil {
		return err
	}
	p := &progress{log: s.log, name: a.name, all: len(bytes.Fields(stale)), interval: progressInterval, said: time.Now()}
	cmd := s.command(ctx, slices.Concat([]string{"build", "-v", "-mod=readonly"}, flags, []string{"-o", target, main})...)
	cmd.Stderr = p
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w:\n%s", main, err, lastLines(p.other.String()))
	}
	return nil
}

// buildFlags adds Kubernetes' version: without it Kubernetes calls itself v0.0.0,
// which a client that asks for its version takes for too old.
func (s *store) buildFlags() ([]string, error) {
	if s.lead != kubernetes {
		return s.flags, nil
	}
	version, err := s.version(kubernetes)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(version, ".", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("%s v%s: want a version of three parts", kubernetes, version)
	}
	const flag = " -X k8s.io/component-base/version."
	return []string{"-ldflags=-s -w" + flag + "gitVersion=v" + version + flag + "gitMajor=" + parts[0] + flag + "gitMinor=" + parts[1]}, nil
}

// join writes the files of a module that a names into one YAML file. It is kept
// beside the programs, so that later runs need no module cache.
func (s *store) join(ctx context.Context, a artifact, target string) error {
	out, err := s.goCommand(ctx, "mod", "download", "-json", a.module)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("read the answer of go mod download: %w", err)
	}
	var joined bytes.Buffer
	for _, glob := range a.globs {
		files, err := filepath.Glob(filepath.Join(module.Dir, filepath.FromSlash(glob)))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("module %s has no file %s: %w", a.module, glob, errors.Join(err, os.ErrNotExist))
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read a file of module %s: %w", a.module, err)
			}
			fmt.Fprintf(&joined, "---\n%s\n", bytes.TrimSpace(data))
		}
	}
	return os.WriteFile(target, joined.Bytes(), 0o600)
}

func (s *store) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	out, err := s.command(ctx, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], withStderr(err))
	}
	return out, nil
}

// command is go in the module of the components, whatever workspace the repository is part of.
func (s *store) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.source
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), s.env...)
	return cmd
}

// lock takes an advisory lock that the kernel drops with the process, so that none
// is left behind by a killed build.
func lock(ctx context.Context, name string) (unlock func() error, err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the cache: %w", err)
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another process that fills %s: %w", filepath.Dir(name), ctx.Err()), file.Close())
		case <-tick.C:
		}
	}
}
