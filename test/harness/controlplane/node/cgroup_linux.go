package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// enterCgroup makes a cgroup the root of all that the node and its containers see:
// its name is in no path of theirs, and they leave nothing outside of it.
func enterCgroup(hierarchies []string, name string) error {
	for _, hierarchy := range hierarchies {
		if err := os.WriteFile(filepath.Join(hierarchy, name, "cgroup.procs"), []byte("0"), 0o600); err != nil { // 0: the writer
			return fmt.Errorf("enter a cgroup: %w", err)
		}
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make the cgroup a root: %w", err)
	}
	for _, hierarchy := range hierarchies {
		if err := (mount{source: filepath.Join(hierarchy, name), target: hierarchy, flags: syscall.MS_BIND}).do(); err != nil {
			return err
		}
	}
	return nil
}
