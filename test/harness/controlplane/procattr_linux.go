package controlplane

import (
	"os"
	"syscall"
)

// dieWithParent has the kernel end a child even when this process is killed with
// SIGKILL and cannot do it itself.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// ownNamespaces makes a child the first process of a machine of its own, as it
// were: all that it starts, mounts and configures ends with it.
func ownNamespaces() *syscall.SysProcAttr {
	attr := dieWithParent()
	attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	return attr
}

// enterNewNetwork moves the calling thread, and it alone, into a new network namespace.
func enterNewNetwork() error {
	return os.NewSyscallError("unshare", syscall.Unshare(syscall.CLONE_NEWNET))
}

// onMainThread is about the thread that never ends and that /proc shows as the process.
func onMainThread() bool { return syscall.Gettid() == os.Getpid() }
