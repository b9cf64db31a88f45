package policy

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/phrase"
)

// clip bounds what is quoted of an object.
func clip(s string) string { return phrase.Cut(s, 300) }

// clipped is a list, bounded.
func clipped(names []string) string { return clip(strings.Join(names, ", ")) }

// some names at most five, and says how many more there are.
func some(names []string) string { return phrase.Some(names, 5) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// since says when something began, where that is known.
func since(t metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + stamp(t.Time)
}
