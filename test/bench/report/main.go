// Command report runs all measurements and writes what they found to docs/evidence/bench.json, from it docs/evidence/performance.md, and the
// lines for benchstat to bin/bench.txt:
//
//	go run ./test/bench/report
//
// With -render it writes docs/evidence/performance.md anew and measures nothing; with -quick it takes few samples, to try it.
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

	"warmpool.sh/test/bench/result"
	"warmpool.sh/test/harness/install"
)

const (
	jsonFile     = "bench.json"
	textFile     = "bench.txt"
	documentFile = "performance.md"
)

// parts are the programs that measure: what go is told of each; few and more come before and behind it for few samples.
var parts = []struct {
	args, few []string
	program   string
	more      []string
}{
	{
		args:    []string{"test", "-run", "^$", "-bench", ".", "-timeout", "60m", "-benchtime", "500ms", "-count", "6"},
		few:     []string{"-benchtime", "10ms", "-count", "1"}, // the last of a flag counts
		program: "./test/bench",
	},
	{args: []string{"run"}, program: "./test/bench/admission", more: []string{"-n", "20", "-warmup", "5", "-bursts", "1", "-rounds", "1"}},
	{args: []string{"run"}, program: "./test/bench/imagesync", more: []string{"-pools", "3", "-changes", "3"}},
	{args: []string{"run"}, program: "./test/bench/audit", more: []string{"-nodes", "200", "-pods", "100", "-placeholders", "20", "-runs", "1"}},
	{args: []string{"run"}, program: "./test/bench/memory", more: []string{"-nodes", "50", "-pods", "20"}},
}

func main() {
	render := flag.Bool("render", false, "Measure nothing: write "+documentFile+" from "+jsonFile)
	quick := flag.Bool("quick", false, "Take few samples; give -docs too, for nothing follows from them")
	docs := flag.String("docs", "", "Folder of "+jsonFile+" and "+documentFile+" (default: docs/evidence of the repository)")
	flag.Parse()
	if err := run(context.Background(), *docs, *render, *quick); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, docs string, render, quick bool) error {
	root, err := install.Root()
	if err != nil {
		return err
	}
	if docs == "" {
		docs = filepath.Join(root, "docs", "evidence")
	}
	if !render {
		measured, err := measure(ctx, root, quick)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(measured, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, jsonFile), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	document, err := renderFile(filepath.Join(docs, jsonFile))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, documentFile), document, 0o644)
}

// measure runs all parts, one after another: no two at once.
func measure(ctx context.Context, root string, quick bool) (*measured, error) {
	m := &measured{Trial: quick}
	var err error
	if m.Machine, err = thisMachine(ctx, root); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, part := range parts {
		args := append(slices.Clone(part.args), part.program)
		if quick {
			args = slices.Concat(part.args, part.few, []string{part.program}, part.more)
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, io.MultiWriter(&text, os.Stdout), os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("go %s: %w", args, err)
		}
	}
	bin := filepath.Join(root, "bin")
	if err := errors.Join(os.MkdirAll(bin, 0o750), os.WriteFile(filepath.Join(bin, textFile), text.Bytes(), 0o600)); err != nil {
		return nil, err
	}
	m.Rows, err = result.Parse(text.String())
	return m, err
}

func renderFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m measured
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m.document()
}
