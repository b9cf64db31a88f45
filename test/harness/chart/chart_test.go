package chart

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/install"
)

var update = flag.Bool("update", false, "write the generated files of the chart anew")

// TestCurrent keeps the generated files of the chart equal to what they are generated from.
func TestCurrent(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	dir := filepath.Join(root, "manifests", "chart")
	templates, err := Templates(filepath.Join(root, "manifests"))
	require.NoError(t, err)
	schema, err := Schema(root)
	require.NoError(t, err)
	files := map[string]string{"values.schema.json": schema}
	for name, text := range templates {
		files[filepath.Join(generated, name)] = text
	}
	there, err := filepath.Glob(filepath.Join(dir, generated, "*"))
	require.NoError(t, err)
	if *update {
		for _, name := range there {
			require.NoError(t, os.Remove(name))
		}
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return
	}
	assert.Len(t, there, len(templates), "run make docs")
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, text, string(got), "run make docs")
	}
}

const generated = "templates/generated"
