// Package auditpage looks at the HTML page of an audit in headless Chromium, by test/harness/browser.
package auditpage

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
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
	for name, manifests := range map[string]string{
		"fine": "manifests/examples/fine", "broken": "manifests/examples/broken", "odd": "webhook/audit/testdata/page",
	} {
		cmd := exec.CommandContext(t.Context(), warmpool, "audit", "-o", "html", "--fail-on", "none", "-f", manifests)
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
