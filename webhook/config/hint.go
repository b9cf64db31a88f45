package config

import (
	"fmt"
	"strings"

	"warmpool.sh/webhook/spelling"
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
		if n, ok := spelling.Edits(got, lower, fewest-1); ok {
			best, fewest = name, n
		}
	}
	if len(longer) == 1 {
		return longer[0], true
	}
	return best, best != ""
}
