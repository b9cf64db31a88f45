package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// TestLinks follows the relative links of all pages, anchors too, and wants a way from the README to each page.
func TestLinks(t *testing.T) {
	all := pages(t)
	linked := map[string]bool{filepath.Join("..", "README.md"): true}
	for path, text := range all {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			assert.False(t, strings.HasPrefix(target, "/"), "%s: %s is not relative", path, match[1])
			there := path
			if target != "" {
				there = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
				_, err := os.Stat(there)
				require.NoError(t, err, "%s: %s", path, match[1])
			}
			linked[there] = true
			if anchor != "" {
				assert.Contains(t, anchors(all[there]), anchor, "%s: %s has no such heading", path, match[1])
			}
		}
	}
	for path := range all {
		assert.True(t, linked[path], "no page links to %s", path)
	}
}

// pages are the Markdown files of the repository, without what stands in fences.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(path string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		found[path] = fence.ReplaceAllString(string(text), "")
	}
	top, err := filepath.Glob(filepath.Join("..", "*.md"))
	require.NoError(t, err)
	for _, path := range top {
		add(path)
	}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			add(filepath.Join("..", "docs", path))
		}
		return err
	}))
	return found
}

// anchors are those of a page's headings, as GitHub and GitLab make them.
func anchors(text string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return found
}
