// Command audit measures warmpool audit over a folder of manifests, beside what only decoding the same files takes:
//
//	go run ./test/bench/audit -nodes 10000 -pods 5000 -placeholders 500
//
// Wall time, processor time and resident memory are those of the command as a user runs it. Decoding is sigs.k8s.io/yaml
// into maps, document by document on one core.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"warmpool.sh/test/bench/result"
	"warmpool.sh/test/harness/install"
)

func main() {
	var size size
	flag.IntVar(&size.nodes, "nodes", 10_000, "nodes")
	flag.IntVar(&size.pods, "pods", 5_000, "Workspace pods")
	flag.IntVar(&size.placeholders, "placeholders", 500, "placeholder Deployments, each with two pods")
	flag.IntVar(&size.pools, "pools", 20, "pools")
	flag.IntVar(&size.images, "images", 10, "images that each node reports")
	runs := flag.Int("runs", 3, "runs, of which the median counts")
	outputs := flag.String("outputs", "json,table,html,sarif", "output formats, each measured by itself")
	dir := flag.String("dir", "", "Folder for the manifests, to keep; empty: a temporary one")
	flag.Parse()
	if err := run(context.Background(), size, *runs, *dir, strings.Split(*outputs, ",")); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// took is what one pass over the manifests cost.
type took struct {
	wall, cpu time.Duration
	maxRSS    int64 // bytes; 0: not measured
}

func run(ctx context.Context, size size, runs int, dir string, outputs []string) (err error) {
	temporary, err := os.MkdirTemp("", "warmpool-audit-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if dir == "" {
		dir = filepath.Join(temporary, "manifests")
	}
	written, err := size.write(dir)
	if err != nil {
		return err
	}
	root, err := install.Root()
	if err != nil {
		return err
	}
	binary, err := install.Build(ctx, root, temporary)
	if err != nil {
		return err
	}
	var decodes []took
	audits := make([][]took, len(outputs))
	for range runs { // in turn, so that all see the same machine
		decode, err := decodeAll(dir)
		if err != nil {
			return err
		}
		decodes = append(decodes, decode)
		for i, output := range outputs {
			audit, err := auditOnce(ctx, binary, dir, output)
			if err != nil {
				return err
			}
			audits[i] = append(audits[i], audit)
		}
	}
	_, _ = fmt.Fprintf(os.Stderr, "%d nodes, %d Workspace pods, %d placeholders in %d pools, %d MiB of YAML\n",
		size.nodes, size.pods, size.placeholders, size.pools, written>>20)
	least := median(decodes)
	err = least.write(os.Stdout, "decoding-alone", runs, least)
	for i, output := range outputs {
		err = errors.Join(err, median(audits[i]).write(os.Stdout, output, runs, least))
	}
	return err
}

// auditOnce runs the command.
func auditOnce(ctx context.Context, binary, dir, output string) (took, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "audit", "-f", dir, "-o", output, "--fail-on", "none")
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return took{}, err
	}
	t := took{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if out.Len() == 0 {
		return took{}, fmt.Errorf("-o %s printed nothing", output)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return took{}, errors.New("this system does not tell the resident memory of processes")
	}
	t.maxRSS = usage.Maxrss << 10
	return t, nil
}

// decodeAll is the least that any reader of these files does.
func decodeAll(dir string) (took, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return took{}, err
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return took{}, err
	}
	start := time.Now()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return took{}, err
		}
		for document := range bytes.SplitSeq(data, []byte(separator)) {
			var object map[string]any
			if err := yaml.Unmarshal(document, &object); err != nil {
				return took{}, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	wall := time.Since(start)
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	return took{wall: wall, cpu: cpu}, err
}

// median is that of the wall times, with what else that run cost.
func median(all []took) took {
	slices.SortFunc(all, func(a, b took) int { return int(a.wall - b.wall) })
	return all[len(all)/2]
}

// write prints a row, with its ratios to the least.
func (t took) write(out io.Writer, name string, runs int, least took) error {
	metrics := []result.Metric{
		{Unit: "s", Value: t.wall.Seconds()}, {Unit: "x-decoding", Value: t.wall.Seconds() / least.wall.Seconds()},
		{Unit: "cpu-s", Value: t.cpu.Seconds()}, {Unit: "cpu-x-decoding", Value: t.cpu.Seconds() / least.cpu.Seconds()},
	}
	if t.maxRSS > 0 {
		metrics = append(metrics, result.Metric{Unit: "resident-MiB", Value: float64(t.maxRSS) / (1 << 20)})
	}
	return result.Write(out, "Audit/"+name, runs, metrics...)
}
