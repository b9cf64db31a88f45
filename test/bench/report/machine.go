package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"warmpool.sh/test/bench/result"
)

// measured is bench.json.
type measured struct {
	// Trial is one with few samples.
	Trial   bool         `json:"trial,omitempty"`
	Machine machine      `json:"machine"`
	Rows    []result.Row `json:"rows"`
}

// machine is where it was measured, and when.
type machine struct {
	Date       string  `json:"date"`
	CPU        string  `json:"cpu"`
	Processors int     `json:"processors"`
	MemoryMiB  int     `json:"memoryMiB"`
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	Kubernetes string  `json:"kubernetes"`
	Warmpool   string  `json:"warmpool"`
	LoadBefore float64 `json:"loadBefore"` // processes that wanted to run in the minute before
}

var (
	cpuModel    = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	memoryTotal = regexp.MustCompile(`(?m)^MemTotal:\s*([0-9]+) kB$`)
	kubernetes  = regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes (v\S+)`)
)

func thisMachine(ctx context.Context, root string) (machine, error) {
	m := machine{Date: time.Now().UTC().Format(time.DateOnly), Processors: runtime.NumCPU(), Go: runtime.Version(), Warmpool: "unknown"}
	texts := map[string]string{"/proc/cpuinfo": "", "/proc/meminfo": "", "/proc/loadavg": "", "/proc/sys/kernel/osrelease": "", root + "/test/harness/controlplane/components/go.mod": ""}
	for path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			return m, fmt.Errorf("tell what machine this is: %w", err)
		}
		texts[path] = string(text)
	}
	m.CPU = found(cpuModel, texts["/proc/cpuinfo"])
	kib, err := strconv.Atoi(found(memoryTotal, texts["/proc/meminfo"]))
	if err != nil {
		return m, fmt.Errorf("/proc/meminfo: %w", err)
	}
	m.MemoryMiB = kib >> 10
	load, _, _ := strings.Cut(texts["/proc/loadavg"], " ")
	if m.LoadBefore, err = strconv.ParseFloat(load, 64); err != nil {
		return m, fmt.Errorf("/proc/loadavg: %w", err)
	}
	m.Kernel = strings.TrimSpace(texts["/proc/sys/kernel/osrelease"])
	m.Kubernetes = found(kubernetes, texts[root+"/test/harness/controlplane/components/go.mod"])
	// Where there is no git repository, the commit is not known.
	describe := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty")
	describe.Dir = root
	if out, err := describe.Output(); err == nil {
		m.Warmpool = strings.TrimSpace(string(out))
	}
	return m, nil
}

// found is what the parentheses of a pattern match; "unknown" where it does not.
func found(pattern *regexp.Regexp, text string) string {
	if match := pattern.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return "unknown"
}
