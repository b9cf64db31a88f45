package attacks_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/install"
)

var (
	update = flag.Bool("update", false, "write the figures to docs/evidence/reliability.md")
	// rows are those of the table, in the order in which the attacks are tried.
	rows []string
)

const (
	tableBegin = "<!-- begin attacks -->\n"
	tableEnd   = "<!-- end attacks -->\n"
	tableHead  = "| Attack | Pods | Refused | Not placed | Resident at most, MiB |\n|---|--:|--:|--:|--:|\n"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && *update {
		if err := writeRows(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func writeRows() error {
	file := filepath.Join("..", "..", "..", "docs", "evidence", "reliability.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !begun || !ended {
		return fmt.Errorf("%s has no %q and %q", file, tableBegin, tableEnd)
	}
	return os.WriteFile(file, []byte(before+tableBegin+tableHead+strings.Join(rows, "")+tableEnd+after), 0o644)
}

// withstood wants that the attack changed nothing for others, and notes its row.
func (c *cluster) withstood(t *testing.T, attack string, stop func() (int, int, int)) {
	t.Helper()
	created, refused, unplaced := stop()
	rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d | %d |\n", attack, created+refused+unplaced, refused, unplaced, c.resident(t)>>20))
	t.Log(rows[len(rows)-1])
	assert.Positive(t, created)
	assert.Zero(t, refused)
	assert.Zero(t, unplaced)
	require.NoError(t, install.Get(t.Context(), c.warmpool.HealthURL+"/readyz"))
	c.assertPeak(t)
}
