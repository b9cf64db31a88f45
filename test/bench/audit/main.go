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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"warmpool.sh/test/install"
)

func main() {
	var size size
	flag.IntVar(&size.nodes, "nodes", 10_000, "nodes")
	flag.IntVar(&size.pods, "pods", 5_000, "Workspace pods")
	flag.IntVar(&size.placeholders, "placeholders", 500, "placeholder Deployments, each with two pods")
	flag.IntVar(&size.pools, "pools", 20, "pools")
	flag.IntVar(&size.images, "images", 10, "images that each node reports")
	runs := flag.Int("runs", 3, "runs, of which the median counts")
	dir := flag.String("dir", "", "Folder for the manifests, to keep; empty: a temporary one")
	flag.Parse()
	if err := run(context.Background(), size, *runs, *dir); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// took is what one pass over the manifests cost.
type took struct {
	wall, cpu time.Duration
	maxRSS    int64 // bytes; 0: not measured
}

func run(ctx context.Context, size size, runs int, dir string) (err error) {
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
	var decodes, audits []took
	summary := ""
	for range runs { // in turn, so that both see the same machine
		decode, err := decodeAll(dir)
		if err != nil {
			return err
		}
		audit, out, err := auditOnce(ctx, binary, dir)
		if err != nil {
			return err
		}
		decodes, audits, summary = append(decodes, decode), append(audits, audit), out
	}
	return table(os.Stdout, fmt.Sprintf("%d nodes, %d Workspace pods, %d placeholders in %d pools, %d MiB of YAML\n%s",
		size.nodes, size.pods, size.placeholders, size.pools, written>>20, summary), median(decodes), median(audits))
}

// auditOnce runs the command, and returns the summary of its report too.
func auditOnce(ctx context.Context, binary, dir string) (took, string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "audit", "-f", dir, "-o", "json", "--fail-on", "none")
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return took{}, "", err
	}
	t := took{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return took{}, "", errors.New("this system does not tell the resident memory of processes")
	}
	t.maxRSS = usage.Maxrss << 10
	var report struct{ Summary map[string]int }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return took{}, "", fmt.Errorf("read the report: %w", err)
	}
	s := report.Summary
	return t, fmt.Sprintf("%d objects judged: %d errors, %d warnings, %d info", s["objects"], s["error"], s["warning"], s["info"]), nil
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

func table(out io.Writer, title string, decode, audit took) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintf(w, "%s\n\twall\tprocessor\tresident\n", title)
	_, err2 := fmt.Fprintf(w, "decoding alone\t%.1f s\t%.1f s\t\n", decode.wall.Seconds(), decode.cpu.Seconds())
	_, err3 := fmt.Fprintf(w, "warmpool audit\t%.1f s\t%.1f s\t%d MiB\n", audit.wall.Seconds(), audit.cpu.Seconds(), audit.maxRSS>>20)
	_, err4 := fmt.Fprintf(w, "ratio\t%.2f\t%.2f\t\n", audit.wall.Seconds()/decode.wall.Seconds(), audit.cpu.Seconds()/decode.cpu.Seconds())
	return errors.Join(err, err2, err3, err4, w.Flush())
}
