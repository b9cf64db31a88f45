package audit

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/policy"
)

const defaultWidth = 100

// table writes a report for people. Nothing is written before all is there, so that no write can fail half-way.
type table struct {
	strings.Builder
	screen Screen
}

func printTable(out io.Writer, r *Report, screen Screen) error {
	screen.Width = cmp.Or(screen.Width, defaultWidth)
	t := &table{screen: screen}
	t.wrapped("", r.Summary.text())
	for _, note := range r.Notes {
		t.wrapped("* ", note)
	}
	for i := range r.Findings {
		t.finding(&r.Findings[i])
	}
	_, err := io.WriteString(out, t.String())
	return err
}

// text is the summary as a sentence.
func (s Summary) text() string {
	return fmt.Sprintf("%s judged: %s, %s, %d info", phrase.Count(s.Objects, "object"), phrase.Count(s.Error, "error"), phrase.Count(s.Warning, "warning"), s.Info)
}

// add never fails: a Builder takes everything.
func (t *table) add(text string) { _, _ = t.WriteString(text) }

func (t *table) finding(f *Finding) {
	t.add("\n" + t.colored(f.Severity, strings.ToUpper(string(f.Severity))) + " ")
	head := []string{f.Rule}
	if object := f.object(); object != "" {
		head = append(head, object)
	}
	if f.Pool != "" {
		head = append(head, "pool "+f.Pool)
	}
	t.add(printable(strings.Join(head, "  ")) + "\n")
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	t.wrapped("  ", text)
	t.wrapped("  Fix: ", f.Fix)
	if f.Place.File != "" {
		t.add("  At:  " + printable(f.Place.text()) + "\n")
	}
}

// text is the place as compilers write it, which terminals and editors follow.
func (p Place) text() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// ansi are the colours of the severities.
var ansi = map[policy.Severity]string{
	policy.SeverityError: "\x1b[1;31m", policy.SeverityWarning: "\x1b[1;33m", policy.SeverityInfo: "\x1b[1;36m",
}

func (t *table) colored(severity policy.Severity, text string) string {
	if !t.screen.Color {
		return text
	}
	return ansi[severity] + text + "\x1b[0m"
}

// wrapped writes the text behind the head with lines of at most the screen's width where words allow; the lines that
// follow are indented as far as the head reaches.
func (t *table) wrapped(head, text string) {
	line, used := head, len(head)
	first := true
	for word := range strings.FieldsSeq(printable(text)) {
		length := len([]rune(word))
		switch {
		case first:
			line += word
			used += length
		case used+1+length > t.screen.Width:
			t.add(line + "\n")
			line = strings.Repeat(" ", len(head)) + word
			used = len(head) + length
		default:
			line += " " + word
			used += 1 + length
		}
		first = false
	}
	t.add(strings.TrimRight(line, " ") + "\n")
}

// printable keeps what objects hold from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
