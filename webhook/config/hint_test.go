package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"placeholder-rollout", "placeholder-replicas", "nodePools", "nodeLabel", "cpu", "Deny"}
	for got, want := range map[string]string{
		"placeholder-rolout":       "placeholder-rollout",
		"place-holder-rollout":     "placeholder-rollout",
		"placeholder-re":           "placeholder-replicas", // The only one that begins so.
		"placeholder-":             "",                     // Two do.
		"NODEPOOLS":                "nodePools",
		"nodePool":                 "nodePools",
		"deny":                     "Deny",
		"Denny":                    "Deny",
		"gpu":                      "", // One edit of three letters is another word.
		"cpus":                     "cpu",
		"":                         "",
		"entirely-different":       "",
		strings.Repeat("x", 1<<20): "",
	} {
		if want != "" {
			want = ` (did you mean "` + want + `"?)`
		}
		assert.Equal(t, want, didYouMean(got, names), clip(got))
	}
}
