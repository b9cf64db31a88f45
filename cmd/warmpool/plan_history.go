package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

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
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), longestLine)
	var parse parser
	number := 0
	for lines.Scan() {
		number++
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if number%100_000 == 0 {
			next(fmt.Sprintf("%s, line %d", name, number))
		}
		if parse == nil {
			var header bool
			var err error
			if parse, header, err = h.parserFor(line); err != nil {
				return fmt.Errorf("%s, line %d: %w", name, number, err)
			}
			if header {
				continue
			}
		}
		pool, start, err := parse(line)
		if err == nil {
			err = h.add(pool, start)
		}
		if err := h.judge(err, name, number); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s, line %d: longer than %d bytes", name, number+1, longestLine)
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
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

func (h *history) add(pool string, start capacity.Start) error {
	if len(pool) > longestName || strings.ContainsFunc(pool, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("pool: a name of at most 253 printable characters is expected")
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

// parserFor tells the format by the first line.
func (h *history) parserFor(line string) (parse parser, header bool, err error) {
	if strings.HasPrefix(line, "{") {
		return h.parseJSON, false, nil
	}
	if _, err := strconv.ParseFloat(line, 64); err == nil {
		return func(line string) (string, capacity.Start, error) {
			at, err := h.seconds(line)
			return defaultPool, capacity.Start{At: at}, err
		}, false, nil
	}
	names, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return nil, false, fmt.Errorf("a CSV header, a JSON object or a number was expected: %w", err)
	}
	columns := map[string]int{"time": -1, "pool": -1, "minutes": -1}
	for i, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		if at, wanted := columns[name]; wanted && at < 0 {
			columns[name] = i
		}
	}
	if columns["time"] < 0 {
		return nil, false, fmt.Errorf("a CSV header with the column time, a JSON object or a number was expected, not %.60q", line)
	}
	return func(line string) (string, capacity.Start, error) { return h.parseCSV(columns, len(names), line) }, true, nil
}

// defaultPool is the pool of starts that name none.
const defaultPool = "default"

func (h *history) parseCSV(columns map[string]int, count int, line string) (string, capacity.Start, error) {
	cells, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return "", capacity.Start{}, err
	}
	if len(cells) != count {
		return "", capacity.Start{}, fmt.Errorf("%d fields, and the header has %d", len(cells), count)
	}
	cell := func(name string) string {
		if columns[name] < 0 {
			return ""
		}
		return strings.TrimSpace(cells[columns[name]])
	}
	return h.start(cell("time"), cell("pool"), cell("minutes"))
}

func (h *history) parseJSON(line string) (string, capacity.Start, error) {
	var row struct {
		Time    any          `json:"time"`
		Pool    string       `json:"pool"`
		Minutes *json.Number `json:"minutes"`
	}
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&row); err != nil {
		return "", capacity.Start{}, fmt.Errorf("no JSON object with time, pool and minutes: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", capacity.Start{}, errors.New("one JSON object a line is expected, and something follows it")
	}
	at, minutes := "", ""
	switch value := row.Time.(type) {
	case string:
		at = value
	case json.Number:
		at = value.String()
	}
	if row.Minutes != nil {
		minutes = row.Minutes.String()
	}
	return h.start(at, row.Pool, minutes)
}

func (h *history) start(at, pool, minutes string) (string, capacity.Start, error) {
	if pool == "" {
		pool = defaultPool
	}
	var start capacity.Start
	var err error
	if start.At, err = h.time(at); err != nil {
		return "", capacity.Start{}, err
	}
	if minutes == "" {
		return pool, start, nil
	}
	stays, err := strconv.ParseFloat(minutes, 64)
	if err != nil || !(stays >= 0 && stays <= mostMinutes) {
		return "", capacity.Start{}, fmt.Errorf("minutes: %.40q is no number from 0 to %d", minutes, mostMinutes)
	}
	start.Stays = max(time.Duration(stays*float64(time.Minute)), time.Nanosecond) // 0 would be for good
	return pool, start, nil
}

func (h *history) time(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && h.epochGiven {
		return h.seconds(text)
	}
	return time.Time{}, fmt.Errorf("time: %.40q is no RFC 3339 time such as 2026-01-05T09:30:00Z; seconds need --epoch", text)
}

func (h *history) seconds(text string) (time.Time, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > 1e9 {
		return time.Time{}, fmt.Errorf("time: %.40q is no number of seconds from the epoch, of at most 1e9", text)
	}
	return h.epoch.Add(time.Duration(n * float64(time.Second))), nil
}
