//go:build !linux

package controlplane

import (
	"errors"
	"syscall"
)

// dieWithParent can do nothing here: only Linux ends a child with its parent, so
// elsewhere children outlive a process that ends without Stop.
func dieWithParent() *syscall.SysProcAttr { return nil }

func ownNamespaces() *syscall.SysProcAttr { return nil }

func enterNewNetwork() error { return errors.ErrUnsupported }

func onMainThread() bool { return false }
