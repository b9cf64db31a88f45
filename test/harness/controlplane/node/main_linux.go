// Command node is the first process of a real node, in mount, process, network,
// host name and IPC namespaces of its own. It gives the node its paths, its
// address, and then containerd and kubelet; the node ends when any of the three does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	device     = "eth0"
	socket     = "/run/containerd/containerd.sock"
	startLimit = 30 * time.Second
	interval   = 20 * time.Millisecond
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run() error {
	name := flag.String("name", "", "host name")
	address := flag.String("address", "", "address with prefix length of "+device+", which whoever starts this puts into its namespace")
	dir := flag.String("dir", "", "folder with containerd.toml, and with what outlives a mount namespace: lib and log")
	cpus := flag.Int("cpus", 0, "number of CPUs that the kubelet finds; 0: those of the machine")
	memory := flag.Int("memory", 0, "KiB of memory that the kubelet finds; 0: that of the machine")
	cgroup := flag.String("cgroup", "", "path of a cgroup, the same in every hierarchy, that is the node's root")
	hierarchies := flag.String("hierarchies", "", "where the hierarchies of cgroups are mounted, with colons between them")
	flag.Parse()
	runtime.LockOSThread() // what is unshared is one thread's, and its children's
	if err := syscall.Sethostname([]byte(*name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := mountAll(*dir); err != nil {
		return err
	}
	if err := enterCgroup(filepath.SplitList(*hierarchies), *cgroup); err != nil {
		return err
	}
	if err := pretend(*cpus, *memory); err != nil {
		return err
	}
	if err := configureNetwork(*address); err != nil {
		return err
	}
	containerd, err := start("containerd", "--log-level=warn", "--config", filepath.Join(*dir, "containerd.toml"))
	if err != nil {
		return err
	}
	if err := poll("containerd's socket", func() bool { _, err := os.Stat(socket); return err == nil }); err != nil {
		return err
	}
	kubelet, err := start("kubelet", flag.Args()...)
	if err != nil {
		return err
	}
	return reap(map[int]string{containerd: "containerd", kubelet: "kubelet"})
}

func start(name string, args ...string) (pid int, err error) {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", name, err)
	}
	return cmd.Process.Pid, nil
}

// reap collects every process that ends, which is the duty of a first process,
// until one of those named does.
func reap(named map[int]string) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for a process: %w", err)
		}
		if name, ok := named[pid]; ok {
			return fmt.Errorf("%s ended with exit code %d", name, status.ExitStatus())
		}
	}
}

func configureNetwork(address string) error {
	if err := poll(device, func() bool { _, err := net.InterfaceByName(device); return err == nil }); err != nil {
		return err
	}
	ip := exec.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader("link set lo up\naddress add " + address + " dev " + device + "\nlink set " + device + " up\n")
	if out, err := ip.CombinedOutput(); err != nil {
		return fmt.Errorf("configure %s: %w: %s", device, err, out)
	}
	return nil
}

func poll(what string, done func() bool) error {
	for deadline := time.Now().Add(startLimit); !done(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s after %s", what, startLimit)
		}
	}
	return nil
}
