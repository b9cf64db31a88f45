package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sysctls are settings of the whole machine that the kubelet writes.
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

type mount struct {
	source, target, fsType string
	flags                  uintptr
	data                   string
}

// mountAll gives the node its own paths in place of the machine's, so that default
// paths of several nodes do not clash. All of it goes with the mount namespace.
func mountAll(dir string) error {
	lib, log := filepath.Join(dir, "lib"), filepath.Join(dir, "log")
	if err := os.MkdirAll(filepath.Join(lib, "kubelet"), 0o755); err != nil {
		return fmt.Errorf("make the node's folders: %w", err)
	}
	if err := os.MkdirAll(log, 0o755); err != nil {
		return fmt.Errorf("make the node's folders: %w", err)
	}
	mounts := []mount{
		// Cut off from the machine first; then shared with the containers, as the kubelet expects.
		{target: "/", flags: syscall.MS_REC | syscall.MS_PRIVATE},
		{target: "/", flags: syscall.MS_REC | syscall.MS_SHARED},
		{source: "proc", target: "/proc", fsType: "proc", flags: syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{source: lib, target: "/var/lib", flags: syscall.MS_BIND},
		{source: log, target: "/var/log", flags: syscall.MS_BIND},
		{source: "tmpfs", target: "/run", fsType: "tmpfs", data: "mode=755"},
	}
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	for _, name := range sysctls {
		if err := hide(filepath.Join("/proc/sys", name)); err != nil {
			return err
		}
	}
	return nil
}

func (m mount) do() error {
	if err := syscall.Mount(m.source, m.target, m.fsType, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.source, m.target, err)
	}
	return nil
}

// hide puts a copy over a setting, which may be written without effect.
func hide(setting string) error {
	value, err := os.ReadFile(setting)
	if err != nil {
		return fmt.Errorf("read a setting of the machine: %w", err)
	}
	return cover(setting, value)
}

// cover mounts a file with this content over another.
func cover(path string, content []byte) error {
	file := filepath.Join("/run", strings.ReplaceAll(path, "/", "_"))
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("write what covers %s: %w", path, err)
	}
	return mount{source: file, target: path, flags: syscall.MS_BIND}.do()
}
