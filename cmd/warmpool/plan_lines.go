package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"warmpool.sh/webhook/capacity"
)

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
		return nil, false, fmt.Errorf("a CSV header, a JSON object or a number was expected: %w", csvReason(err))
	}
	columns := map[string]int{"time": -1, "pool": -1, "minutes": -1}
	for i, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		switch at, wanted := columns[name]; {
		case !wanted:
		case at >= 0:
			return nil, false, fmt.Errorf("the columns %d and %d are both called %s", at+1, i+1, name)
		default:
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
		return "", capacity.Start{}, csvReason(err)
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

// csvReason is the error without its line, which is not the file's.
func csvReason(err error) error {
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
		return fmt.Errorf("column %d: %w", parse.Column, parse.Err)
	}
	return err
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
