package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// pretend makes the kubelet find as many CPUs and as much memory as it is told, in
// the files where it counts them. 0 leaves what the machine has.
func pretend(cpus, memoryKiB int) error {
	if cpus > 0 {
		if err := pretendCPUs(cpus); err != nil {
			return err
		}
	}
	if memoryKiB == 0 {
		return nil
	}
	const file = "/proc/meminfo"
	info, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the size of the memory: %w", err)
	}
	total := fmt.Appendf(nil, "MemTotal: %d kB", memoryKiB)
	return cover(file, regexp.MustCompile(`(?m)^MemTotal:.*`).ReplaceAll(info, total))
}

func pretendCPUs(cpus int) error {
	const system, shown = "/sys/devices/system", "/run/pretended"
	info, err := os.ReadFile(system + "/node/node0/meminfo")
	if err != nil {
		return fmt.Errorf("read what the machine has: %w", err)
	}
	node := filepath.Join(shown, "node0")
	files := map[string]string{"meminfo": string(info)}
	for i := range cpus {
		topology := filepath.Join(fmt.Sprintf("cpu%d", i), "topology")
		files[filepath.Join(topology, "core_id")] = strconv.Itoa(i)
		files[filepath.Join(topology, "physical_package_id")] = "0"
	}
	for name, text := range files {
		path := filepath.Join(node, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make up CPUs: %w", err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			return fmt.Errorf("make up CPUs: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(node, "hugepages"), 0o755); err != nil {
		return fmt.Errorf("make up CPUs: %w", err)
	}
	if err := cover(system+"/cpu/online", fmt.Appendf(nil, "0-%d\n", cpus-1)); err != nil {
		return err
	}
	return mount{source: shown, target: system + "/node", flags: syscall.MS_BIND}.do()
}
