package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readHistory(text io.Reader, skipBad bool) (*history, error) {
	h := &history{epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), epochGiven: true, skipBad: skipBad}
	return h, h.readAll([]string{"-"}, text, func(string) {})
}

// A line that is too long is one bad line: it is named, or skipped, and the next one is read.
func TestGiganticLine(t *testing.T) {
	text := func() io.Reader {
		return io.MultiReader(strings.NewReader("time,pool\n1,gpu\n"), io.LimitReader(endless{}, 64<<20), strings.NewReader("\n2,gpu\n3,gpu"))
	}
	_, err := readHistory(text(), false)
	require.EqualError(t, err, "standard input, line 3: longer than 65536 bytes")
	h, err := readHistory(text(), true)
	require.NoError(t, err)
	assert.Len(t, h.starts["gpu"], 3)
	assert.Equal(t, 1, h.bad)
	_, err = readHistory(io.LimitReader(endless{}, 64<<20), true)
	require.ErrorContains(t, err, "no start in -")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// An error of the file ends the reading, with --skip-bad too.
func TestBrokenPipe(t *testing.T) {
	_, err := readHistory(io.MultiReader(strings.NewReader("1\n2\n"), broken{}), true)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// What is read is bounded: a pool or a start too many ends it, with --skip-bad too.
func TestHistoryIsBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("time,pool\n")
	for i := range mostPools + 1 {
		fmt.Fprintf(&text, "%d,pool-%d\n", i, i)
	}
	_, err := readHistory(strings.NewReader(text.String()), true)
	require.ErrorContains(t, err, `line 202: pool: "pool-200" is one more than 200 pools`)
}

// FuzzHistory: whatever a history holds, it is read or refused with file and line.
func FuzzHistory(f *testing.F) {
	for _, text := range []string{"time,pool,minutes\n2026-01-05T09:00:00Z,gpu,30\n", "{\"time\": 1, \"minutes\": \"3\"}", "1e3\n-5", "\ufefftime\r\n\"", "1\n{}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := readHistory(strings.NewReader(text), false)
		if err != nil {
			assert.Regexp(t, `^(standard input, line \d+: |--history: no start in -$)`, err.Error())
			return
		}
		for _, starts := range h.starts {
			for _, s := range starts {
				assert.GreaterOrEqual(t, s.Stays, time.Duration(0))
			}
		}
	})
}
