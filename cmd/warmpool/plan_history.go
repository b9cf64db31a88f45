package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"warmpool.sh/webhook/capacity"
)

// What a history may hold: more is refused with words, not with memory.
const (
	mostStarts  = 5_000_000
	mostPools   = 200
	longestLine = 64 << 10
	longestName = 253
	mostMinutes = 366 * 24 * 60
)

// history is starts by pool, in the order of the files.
type history struct {
	epoch      time.Time
	epochGiven bool
	skipBad    bool
	starts     map[string][]capacity.Start
	count, bad int
	firstBad   error
}

func (h *history) readAll(files []string, in io.Reader, next func(string)) error {
	h.starts = map[string][]capacity.Start{}
	stdin := false
	for _, name := range files {
		next(name)
		if name == "-" {
			if stdin {
				return errors.New("--history - is given twice: standard input can be read once")
			}
			stdin = true
			if err := h.read("standard input", in, next); err != nil {
				return err
			}
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("--history: %w", err)
		}
		err = h.read(name, file, next)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	if h.count == 0 {
		return fmt.Errorf("--history: no start in %s", strings.Join(files, ", "))
	}
	return nil
}

// parser makes a start of a line.
type parser func(line string) (pool string, start capacity.Start, err error)

func (h *history) read(name string, in io.Reader, next func(string)) error {
	lines := bufio.NewReaderSize(in, longestLine)
	var parse parser
	for number := 1; ; number++ {
		if number%100_000 == 0 {
			next(fmt.Sprintf("%s, line %d", name, number))
		}
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			err = fmt.Errorf("longer than %d bytes", longestLine)
		} else if line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if parse == nil && err == nil {
			var header bool
			if parse, header, err = h.parserFor(line); err != nil {
				return fmt.Errorf("%s, line %d: %w", name, number, err)
			}
			if header {
				continue
			}
		}
		if err == nil {
			err = h.add(parse(line))
		}
		if err := h.judge(err, name, number); err != nil {
			return err
		}
	}
}

// readLine is the next line; bufio.ErrBufferFull says that it is too long, and what follows is the next one.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	tooLong := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	switch {
	case tooLong && (err == nil || errors.Is(err, io.EOF)):
		return "", bufio.ErrBufferFull
	case errors.Is(err, io.EOF) && len(line) > 0: // the last one
		return string(line), nil
	}
	return string(line), err
}

// judge counts what is wrong with a line where that is asked for, else it ends the reading.
func (h *history) judge(err error, name string, number int) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s, line %d: %w", name, number, err)
	if full := (*tooMuch)(nil); errors.As(err, &full) || !h.skipBad {
		return err
	}
	if h.bad++; h.bad == 1 {
		h.firstBad = err
	}
	return nil
}

// tooMuch is a bound that no --skip-bad lifts.
type tooMuch struct{ error }

func (h *history) add(pool string, start capacity.Start, err error) error {
	if err != nil {
		return err
	}
	if len(pool) > longestName || !utf8.ValidString(pool) || strings.ContainsFunc(pool, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("pool: %.40q is no name of at most %d printable characters", pool, longestName)
	}
	if _, known := h.starts[pool]; !known && len(h.starts) == mostPools {
		return &tooMuch{fmt.Errorf("pool: %q is one more than %d pools: plan some of them at a time", pool, mostPools)}
	}
	if h.count == mostStarts {
		return &tooMuch{fmt.Errorf("more than %d starts: plan a part of the history", mostStarts)}
	}
	h.count++
	h.starts[pool] = append(h.starts[pool], start)
	return nil
}
