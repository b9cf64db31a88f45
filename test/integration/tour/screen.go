package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/component-base/term"
)

const (
	textWidth = 92
	// Of more than this many unchanged lines in a row only the first and last are shown.
	longestContext = 12
	keptContext    = 2
)

// Terminal colours.
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	reset = "\x1b[0m"
)

// screen is where the tour is told. What cannot be written is no reason to stop.
type screen struct {
	out    io.Writer
	colour bool
}

func newScreen(out io.Writer) *screen {
	_, _, err := term.TerminalSize(out)
	return &screen{out: out, colour: err == nil && os.Getenv("NO_COLOR") == ""}
}

func (s *screen) heading(text string) { s.line("\n"+text, bold) }

// say prints a paragraph.
func (s *screen) say(format string, args ...any) {
	s.line(wrap(fmt.Sprintf(format, args...), "  ", "  "), "")
}

// point prints a paragraph that hangs on a mark.
func (s *screen) point(mark, text string) {
	s.line(wrap(text, "    "+mark, "    "+strings.Repeat(" ", utf8.RuneCountInString(mark))), "")
}

// verbatim prints lines to copy.
func (s *screen) verbatim(lines ...string) {
	s.line("\n    "+strings.Join(lines, "\n    ")+"\n", "")
}

// diff prints after, and of before the lines that are gone.
func (s *screen) diff(before, after string) {
	a, b := strings.Split(strings.TrimSpace(before), "\n"), strings.Split(strings.TrimSpace(after), "\n")
	for _, op := range difflib.NewMatcher(a, b).GetOpCodes() {
		if op.Tag == 'e' {
			s.context(b[op.J1:op.J2])
			continue
		}
		s.change(a[op.I1:op.I2], b[op.J1:op.J2])
	}
}

// change prints a line that is gone beside the one with its new value, where there is one.
func (s *screen) change(gone, added []string) {
	gone = slices.Clone(gone)
	takeOut := func(same func(line string) bool) {
		for _, line := range gone {
			if same(line) {
				s.line("  - "+line, red)
			}
		}
		gone = slices.DeleteFunc(gone, same)
	}
	takeOut(func(line string) bool { return !slices.ContainsFunc(added, sameKey(line)) })
	for _, line := range added {
		takeOut(sameKey(line))
		s.line("  + "+line, green)
	}
}

// sameKey reports whether a line sets the same key, at the same depth.
func sameKey(line string) func(other string) bool {
	key, _, _ := strings.Cut(line, ":")
	return func(other string) bool { return strings.HasPrefix(other, key+":") }
}

func (s *screen) context(lines []string) {
	for i, line := range lines {
		switch {
		case len(lines) <= longestContext || i < keptContext || i >= len(lines)-keptContext:
			s.line("    "+line, "")
		case i == keptContext:
			s.line("    ...", "")
		}
	}
}

func (s *screen) line(text, colour string) {
	if s.colour && colour != "" {
		text = colour + text + reset
	}
	_, _ = fmt.Fprintln(s.out, text)
}

// Write takes the lines of others, such as the control plane's progress.
func (s *screen) Write(p []byte) (int, error) {
	s.say("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// wrap breaks a text between words into lines of textWidth characters; a longer word keeps a line of its own.
func wrap(text, first, others string) string {
	var out strings.Builder
	line := first
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textWidth {
			out.WriteString(line + "\n")
			line, empty = others, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return out.String() + line
}
