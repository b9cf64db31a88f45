package controlplane

import "syscall"

// dieWithParent has the kernel end a child even when this process is killed with
// SIGKILL and cannot do it itself.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
