package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cgroupHierarchies are the mounted hierarchies of cgroups, at least one of which is
// of version 1. Beside those, the container runtime uses one of version 2 too.
func cgroupHierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, fmt.Errorf("list the cgroup hierarchies: %w", err)
	}
	var paths []string
	first := false
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line) // DEVICE PATH TYPE …
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			paths = append(paths, fields[1])
			first = first || fields[2] == "cgroup"
		}
	}
	if !first {
		return nil, errors.New("no cgroup hierarchy of version 1 is mounted (version 2 alone is not supported)")
	}
	slices.Sort(paths)
	return paths, nil
}

// makeCgroups makes a cgroup in every hierarchy, with its parents. The kernel gives
// a new one of cpuset no CPUs and no memory.
func makeCgroups(hierarchies []string, name string) error {
	for _, hierarchy := range hierarchies {
		at := hierarchy
		for part := range strings.SplitSeq(name, "/") {
			parent := at
			at = filepath.Join(at, part)
			if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make a cgroup: %w", err)
			}
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				value, err := os.ReadFile(filepath.Join(parent, file))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(at, file), value, 0o600)
				}
				if err != nil {
					return fmt.Errorf("make a cgroup: %w", err)
				}
			}
		}
	}
	return nil
}

// removeCgroups removes a cgroup and all below from every hierarchy. A process that
// was killed may be in it for a moment longer.
func removeCgroups(hierarchies []string, name string) error {
	var errs []error
	for _, hierarchy := range hierarchies {
		path := filepath.Join(hierarchy, name)
		err := removeTree(path)
		for deadline := time.Now().Add(stopLimit); errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline); {
			time.Sleep(pollInterval)
			err = removeTree(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove a cgroup: %w", err))
		}
	}
	return errors.Join(errs...)
}

// removeTree removes folders from the lowest up. The files in a cgroup are no
// obstacle, and cannot be removed by themselves.
func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}
