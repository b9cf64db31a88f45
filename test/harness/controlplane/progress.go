package controlplane

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

const progressInterval = 10 * time.Second

// progress reads what go build -v writes to standard error: the name of each package that it compiles, and errors.
type progress struct {
	log       io.Writer
	name      string // of the program
	done, all int    // packages
	interval  time.Duration
	said      time.Time
	line      bytes.Buffer // the last one, which may have no end yet
	other     strings.Builder
}

// Write is called by one goroutine, that of the command.
func (p *progress) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		p.line.Write(line)
		if bytes.HasSuffix(line, []byte("\n")) {
			if err := p.read(p.line.String()); err != nil {
				return 0, err
			}
			p.line.Reset()
		}
	}
	return len(text), nil
}

func (p *progress) read(line string) error {
	if len(strings.Fields(line)) != 1 { // names of packages have no space
		p.other.WriteString(line)
		return nil
	}
	p.done++
	if p.all = max(p.all, p.done); time.Since(p.said) < p.interval && p.done < p.all {
		return nil
	}
	p.said = time.Now()
	if _, err := fmt.Fprintf(p.log, "  %s: %d of %d packages compiled\n", p.name, p.done, p.all); err != nil {
		return fmt.Errorf("report progress: %w", err)
	}
	return nil
}
