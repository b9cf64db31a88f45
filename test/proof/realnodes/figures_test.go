package proof_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var figures = flag.String("figures", "", "write how long Workspaces took to start to this file (JSON), for test/proof/day")

// writeFigures writes seconds from the creation of Workspaces.
func writeFigures(t *testing.T, warm, cold []start) {
	t.Helper()
	type figure struct {
		Name    string  `json:"name"`
		Bound   float64 `json:"bound"`
		Running float64 `json:"running"`
	}
	list := func(starts []start) (all []figure) {
		for _, s := range starts {
			all = append(all, figure{s.name, s.bound.Seconds(), s.running.Seconds()})
		}
		return all
	}
	text, err := json.MarshalIndent(map[string]any{
		"warm": list(warm), "cold": list(cold), "imageMiB": imageSize >> 20, "mibPerSecond": bandwidth >> 20,
	}, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*figures, append(text, '\n'), 0o600))
}
