// Package auditpage looks at the HTML pages of audits and plans in headless Chromium, by test/harness/browser.
package auditpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/workday"
)

// problem is what test/harness/browser tells of a page.
type problem struct {
	Page   string `json:"page"`
	Scheme string `json:"scheme"`
	Width  int    `json:"width"`
	Check  string `json:"check"`
	Text   string `json:"text"`
}

// In light and dark, on a phone and on a desk: no window scrolls sideways, text stands out from its ground, widths stand
// for numbers, the keyboard reaches every finding, links lead somewhere, and nothing is said on the console or fetched.
func TestPages(t *testing.T) {
	chromium := needChromium(t)
	root, err := install.Root()
	require.NoError(t, err)
	folder := t.TempDir()
	warmpool, err := install.Build(t.Context(), root, folder)
	require.NoError(t, err)
	var pages []string
	for name, args := range map[string][]string{
		"fine":   {"audit", "-o", "html", "--fail-on", "none", "-f", "manifests/examples/fine"},
		"broken": {"audit", "-o", "html", "--fail-on", "none", "-f", "manifests/examples/broken"},
		"odd":    {"audit", "-o", "html", "--fail-on", "none", "-f", "webhook/audit/testdata/page"},
		"plan":   {"plan", "-o", "html", "--node-price", "5.4", "--history", starts(t, folder)},
	} {
		cmd := exec.CommandContext(t.Context(), warmpool, args...)
		cmd.Dir = root
		var complaints bytes.Buffer
		cmd.Stderr = &complaints
		page, err := cmd.Output()
		require.NoError(t, err, complaints.String())
		pages = append(pages, filepath.Join(folder, name+".html"))
		require.NoError(t, os.WriteFile(pages[len(pages)-1], page, 0o600))
	}
	for _, p := range look(t, chromium, root, pages...) {
		assert.Fail(t, p.Check, "%s, %s, %d px: %s", filepath.Base(p.Page), p.Scheme, p.Width, p.Text)
	}
}

// starts is a history of two pools, one of which is hardly used.
func starts(t *testing.T, folder string) string {
	t.Helper()
	monday := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	var text strings.Builder
	text.WriteString("time,pool,minutes\n")
	for pool, weekday := range map[string]float64{"a-pool-with-a-long-name-for-large-accelerators": 120, "small": 2} {
		for _, at := range workday.Starts(3, monday, 21, weekday) {
			fmt.Fprintf(&text, "%s,%s,90\n", at.Format(time.RFC3339), pool)
		}
	}
	name := filepath.Join(folder, "starts.csv")
	require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
	return name
}

// What the checks are for they find, in a page that has every fault.
func TestFaultsAreFound(t *testing.T) {
	chromium := needChromium(t)
	root, err := install.Root()
	require.NoError(t, err)
	page, err := filepath.Abs(filepath.Join("testdata", "faulty.html"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, p := range look(t, chromium, root, page) {
		found[p.Check] = true
	}
	assert.Equal(t, map[string]bool{
		"overflow": true, "contrast": true, "scale": true, "headings": true, "labels": true, "links": true,
		"keyboard": true, "console": true, "network": true,
	}, found)
}

func needChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			needs.Check(t, needs.Chromium, nil)
			return path
		}
	}
	needs.Skip(t, needs.Chromium, "no Chromium on the PATH: install it, on Debian by 'apt-get install chromium'")
	return ""
}

// look has test/harness/browser open the pages.
func look(t *testing.T, chromium, root string, pages ...string) []problem {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"-C", filepath.Join(root, "test", "harness", "browser"), "run", ".", "-chromium", chromium}, pages...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	var problems []problem
	require.NoError(t, json.Unmarshal(out, &problems))
	return problems
}
