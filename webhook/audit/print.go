package audit

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Screen is what a table is printed on.
type Screen struct {
	// Width in characters; single words may be longer. 0: 100.
	Width int
	// Color tells that it takes ANSI colours.
	Color bool
}

// format is an output format and how it prints a report.
type format struct {
	name  string
	write func(io.Writer, *Report, Screen) error
}

func formats() []format {
	plain := func(write func(io.Writer, *Report) error) func(io.Writer, *Report, Screen) error {
		return func(out io.Writer, r *Report, _ Screen) error { return write(out, r) }
	}
	return []format{
		{"table", printTable}, {"json", plain(printJSON)}, {"yaml", plain(printYAML)},
		{"sarif", plain(printSARIF)}, {"junit", plain(printJUnit)}, {"openreports", plain(printOpenReports)},
		{"html", plain(printHTML)},
	}
}

// Formats are the names of the output formats.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Print writes the report in a format. Only the table looks at the screen.
func (r *Report) Print(out io.Writer, name string, screen Screen) error {
	all := formats()
	i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
	if i < 0 {
		return fmt.Errorf("no output format %q; use one of %s", name, strings.Join(Formats(), ", "))
	}
	if err := all[i].write(out, r, screen); err != nil {
		return fmt.Errorf("print the report as %s: %w", name, err)
	}
	return nil
}
