package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/bench/result"
)

var docs = filepath.Join("..", "..", "..", "docs", "evidence")

func TestDocumentIsWhatWasMeasured(t *testing.T) {
	want, err := renderFile(filepath.Join(docs, jsonFile))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(docs, documentFile))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "run: go run ./test/bench/report -render")
}

// A part that no one tells of would be measured in vain.
func TestEachPartHasItsSection(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, jsonFile))
	require.NoError(t, err)
	var m measured
	require.NoError(t, json.Unmarshal(text, &m))
	var told []string
	for _, s := range sections {
		told = append(told, s.part)
		units := map[string]bool{"runs": true}
		for _, row := range m.Rows {
			if row.Part == s.part {
				for unit := range row.Metrics {
					units[unit] = true
				}
			}
		}
		for _, c := range s.columns {
			assert.True(t, units[c.unit], "%s has a column of %s, which no row has", s.title, c.unit)
		}
	}
	for _, row := range m.Rows {
		assert.Contains(t, told, row.Part)
	}
}

func TestGoals(t *testing.T) {
	for _, c := range []struct {
		metrics map[string]float64
		atLeast bool
		verdict string
	}{
		{map[string]float64{"u": 1}, false, met},
		{map[string]float64{"u": 1.1}, false, missedWhole},
		{map[string]float64{"u": .9, "u-low": .8, "u-high": 1}, false, met},
		{map[string]float64{"u": .9, "u-low": .8, "u-high": 1.2}, false, metWithin},
		{map[string]float64{"u": 1.1, "u-low": .9, "u-high": 1.2}, false, missedMaybe},
		{map[string]float64{"u": 1.1, "u-low": 1.05, "u-high": 1.2}, false, missedWhole},
		{map[string]float64{"u": 1.1}, true, met},
		{map[string]float64{"u": .9}, true, missedWhole},
	} {
		g := goal{part: "P", name: "n", unit: "u", limit: 1, atLeast: c.atLeast}
		_, verdict, err := g.judge(&measured{Rows: []result.Row{{Part: "P", Name: "n", Metrics: c.metrics}}})
		require.NoError(t, err)
		assert.Equal(t, c.verdict, verdict, "%v", c.metrics)
	}
	_, _, err := goal{part: "P", name: "n", unit: "u"}.judge(&measured{})
	require.ErrorContains(t, err, "no row P/n")
}

func TestNumbers(t *testing.T) {
	for value, text := range map[float64]string{
		0: "0", 1: "1", 1.1: "1.1", 1.0449: "1.04", 0.09039: "0.0904", 57123.4: "57123", 12.345: "12.3", 100: "100", 150: "150", 999.9: "1000",
	} {
		assert.Equal(t, text, number(value))
	}
	assert.Equal(t, "1.06 (1.03–1.1)", cell(map[string]float64{"x": 1.06, "x-low": 1.03, "x-high": 1.1}, "x"))
	assert.Empty(t, cell(nil, "x"))
}
