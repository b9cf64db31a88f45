package main

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted is a writer of everything that commands say. What objects and files are called, and what is in them, must steer
// neither a terminal nor a CI system that reads its jobs' output:
//
//   - control characters, and those that change the direction of text or cannot be seen;
//   - ::error:: at the start of a line (GitHub), and ##[error] or ##vso[…] anywhere (Azure, GitHub, TeamCity).
//
// They are written as JSON writes them, so that JSON has the same content as before.
type quoted struct {
	out io.Writer
	// rest are bytes of a character that is not complete yet.
	rest []byte
	// colon tells that the line, or the word, has only a colon so far; inWord that it has begun.
	inWord, colon bool
	// hashes are those that end what was written, with letters behind two of them.
	hashes  int
	letters bool
}

func newQuoted(out io.Writer) *quoted { return &quoted{out: out} }

// isHarmless tells that a text is written as it is.
func isHarmless(text []byte) bool {
	var written bytes.Buffer
	_, err := newQuoted(&written).Write(text)
	return err == nil && bytes.Equal(written.Bytes(), text)
}

// Write is io.Writer's.
func (q *quoted) Write(p []byte) (int, error) {
	text := append(q.rest, p...)
	var safe []byte
	for len(text) > 0 && utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		safe, text = q.append(safe, r), text[n:]
	}
	q.rest = append([]byte(nil), text...)
	if _, err := q.out.Write(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (q *quoted) append(to []byte, r rune) []byte {
	escape := r != '\n' && r != '\t' && !unicode.IsPrint(r) ||
		r == ':' && q.colon || // the second of a word that starts with two
		r == '[' && q.hashes >= 2
	q.follow(r)
	if !escape {
		return utf8.AppendRune(to, r)
	}
	for _, unit := range utf16.Encode([]rune{r}) {
		to = fmt.Appendf(to, `\u%04x`, unit)
	}
	return to
}

func (q *quoted) follow(r rune) {
	space := unicode.IsSpace(r) || !unicode.IsPrint(r)
	q.colon, q.inWord = r == ':' && !q.inWord, !space
	switch {
	case r == '#' && !q.letters:
		q.hashes++
	case r == '#':
		q.hashes, q.letters = 1, false
	case q.hashes >= 2 && unicode.IsLetter(r):
		q.letters = true
	default:
		q.hashes, q.letters = 0, false
	}
}
