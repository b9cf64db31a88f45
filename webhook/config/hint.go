package config

import (
	"fmt"
	"strings"
)

// didYouMean says which of the names was probably meant by got, as " (did you mean …?)"; empty if none is close.
func didYouMean[T ~string](got string, names []T) string {
	if name, ok := closest(got, names); ok {
		return fmt.Sprintf(" (did you mean %q?)", name)
	}
	return ""
}

// closest returns the name that got was probably meant to be: the one that differs only in case, the only one that starts
// with got, or the first of those with the fewest edits, fewer than one for three letters (gpu is not cpu).
func closest[T ~string](got string, names []T) (T, bool) {
	got = strings.ToLower(got)
	fewest := (len(got)-1)/3 + 1
	var best T
	var longer []T
	for _, name := range names {
		lower := strings.ToLower(string(name))
		if lower == got {
			return name, true
		}
		if got != "" && strings.HasPrefix(lower, got) {
			longer = append(longer, name)
		}
		// Names of other lengths cannot be close: this also keeps the cost of a hostile name small.
		if max(len(lower)-len(got), len(got)-len(lower)) >= fewest {
			continue
		}
		if n := edits(got, lower); n < fewest {
			best, fewest = name, n
		}
	}
	if len(longer) == 1 {
		return longer[0], true
	}
	return best, best != ""
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
