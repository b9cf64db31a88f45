// Package proc tells what other processes take, as Linux shows it in /proc.
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc, which is the same on all architectures that Go runs on.
const tick = 10 * time.Millisecond

// CPU is the processor time that a process has taken so far, all threads and the kernel's part included.
func CPU(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	// The second field, in parentheses, may have spaces and parentheses itself. From the third on: utime is the 14th, stime the 15th.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s has %d fields behind the name, want 13: %s", path, len(fields), text)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: processor time: %w", path, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// Memory is the resident memory of a process in KiB, now and at most so far.
func Memory(pid int) (now, most int, err error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	status, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			now = kib
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			most = kib
		}
	}
	if now == 0 || most == 0 {
		return 0, 0, fmt.Errorf("%s shows no VmRSS or no VmHWM", path)
	}
	return now, most, nil
}
