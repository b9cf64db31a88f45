// Command report prints which tests were skipped and why, from the list that package needs has written.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: report FILE")
		os.Exit(2)
	}
	list, err := os.ReadFile(os.Args[1])
	if err == nil {
		_, err = io.WriteString(os.Stdout, report(string(list)))
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// report has a paragraph for each reason, with the tests of each package.
func report(list string) string {
	tests := map[string]map[string][]string{} // by reason and package
	for line := range strings.Lines(list) {
		need, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		why, rest, _ := strings.Cut(rest, "\t")
		folder, test, complete := strings.Cut(rest, "\t")
		if !complete {
			continue
		}
		reason := need + ": " + why
		if tests[reason] == nil {
			tests[reason] = map[string][]string{}
		}
		tests[reason][folder] = append(tests[reason][folder], test)
	}
	if len(tests) == 0 {
		return "No test was skipped.\n"
	}
	var text strings.Builder
	text.WriteString("Skipped:\n")
	for _, reason := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintf(&text, "  %s\n", reason)
		for _, folder := range slices.Sorted(maps.Keys(tests[reason])) {
			names := slices.Compact(slices.Sorted(slices.Values(tests[reason][folder])))
			fmt.Fprintf(&text, "    %s: %s\n", folder, strings.Join(names, ", "))
		}
	}
	return text.String()
}
