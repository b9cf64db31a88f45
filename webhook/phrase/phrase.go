// Package phrase has what messages are made of: bounded quotes, short lists and counts.
package phrase

import (
	"fmt"
	"strings"
)

// Cut keeps hostile or endless text from filling a message: at most so many bytes of it, and then "…".
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Count is "1 pod", or "3 pods".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Some lists at most so many names, and says how many more there are.
func Some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
