package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	kubelet        = "kubelet"
	containerd     = "containerd"
	containerdCtl  = "ctr"
	containerdShim = "containerd-shim-runc-v2"
	runc           = "runc"
)

var nodeComponents = components{
	folder: "nodecomponents",
	lead:   containerdModule,
	flags:  []string{"-tags=no_btrfs,no_devmapper,no_zfs,no_tracing", "-ldflags=-s -w"},
	env:    []string{"CGO_ENABLED=0"},
}

const (
	containerdModule = "github.com/containerd/containerd/v2"
	cniModule        = "github.com/containernetworking/plugins"
)

var kubeletArtifact = artifact{name: kubelet, module: kubernetes, main: "cmd/kubelet", minutes: 2}

var nodeArtifacts = []artifact{
	{name: containerd, module: containerdModule, main: "cmd/containerd", minutes: 4},
	{name: containerdShim, module: containerdModule, main: "cmd/containerd-shim-runc-v2", minutes: 1},
	{name: containerdCtl, module: containerdModule, main: "cmd/ctr", minutes: 1},
	{name: "bridge", module: cniModule, main: "plugins/main/bridge", minutes: 1},
	{name: "loopback", module: cniModule, main: "plugins/main/loopback", minutes: 1},
	{name: "host-local", module: cniModule, main: "plugins/ipam/host-local", minutes: 1},
}

// RealNodes says why this machine cannot run real nodes, or nil. They need Linux,
// root, the programs ip and runc, namespaces, and cgroups of version 1.
func RealNodes() error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New("real nodes need root on Linux")
	}
	for _, name := range []string{"ip", runc} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("real nodes need the program %s (Debian's packages are iproute2 and runc): %w", name, err)
		}
	}
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	probe := fmt.Sprintf("%s%d-probe", nodesPrefix, os.Getpid())
	if err := errors.Join(makeCgroups(hierarchies, probe), removeCgroups(hierarchies, probe)); err != nil {
		return fmt.Errorf("real nodes need cgroups that can be written to: %w", err)
	}
	cmd := exec.Command("ip", "link", "add", "probe", "type", "bridge")
	cmd.SysProcAttr = ownNamespaces()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("real nodes need new namespaces with a bridge in them: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func locateNodes(ctx context.Context, log io.Writer) (map[string]string, error) {
	paths, err := locateIn(ctx, clusterComponents, log, []artifact{kubeletArtifact})
	if err != nil {
		return nil, err
	}
	more, err := locateIn(ctx, nodeComponents, log, nodeArtifacts)
	maps.Copy(paths, more)
	return paths, err
}

// buildOwn builds a program of this package for any Linux root file system.
func buildOwn(ctx context.Context, name, target string) error {
	module, err := moduleDir(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", target, "./"+name)
	cmd.Dir = filepath.Join(module, "test", "harness", "controlplane")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := cmd.Output(); err != nil {
		return fmt.Errorf("build the program %s: %w", name, withStderr(err))
	}
	return nil
}
