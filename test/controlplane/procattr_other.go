//go:build !linux

package controlplane

import "syscall"

// dieWithParent can do nothing here: only Linux ends a child with its parent, so
// elsewhere children outlive a process that ends without Stop.
func dieWithParent() *syscall.SysProcAttr { return nil }
