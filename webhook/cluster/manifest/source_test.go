package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"warmpool.sh/webhook/cluster/manifest"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: w1\n"

// Windows tools write byte order marks, UTF-16 and CR LF.
func TestObjectsOfOtherEncodings(t *testing.T) {
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(pod)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"UTF-8 with byte order mark": "\ufeff" + pod,
		"UTF-16":                     utf16,
		"CR LF":                      strings.ReplaceAll(pod, "\n", "\r\n") + "---\r\n" + strings.ReplaceAll(pod, "w1\n", "w2\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Objects([]string{"-"}, strings.NewReader(text))
			require.NoError(t, err)
			assert.Equal(t, "standard input, document 1 (Pod default/w1)", objects[0].String())
		})
	}
}

func TestLineNumbersWithCRLF(t *testing.T) {
	text := strings.ReplaceAll(pod+"---\n---\n# comment\n---\n"+pod+"    labels: {}\n", "\n", "\r\n")
	_, err := manifest.Objects([]string{"-"}, strings.NewReader(text))
	assert.EqualError(t, err, "standard input, document 2, line 13: neither YAML nor JSON: mapping values are not allowed in this context")
}

func TestLineNumbersOfEqualDocuments(t *testing.T) {
	_, err := manifest.Objects([]string{"-"}, strings.NewReader("a\n---\na\n--- x\n"))
	assert.EqualError(t, err, "standard input, line 4: invalid Yaml document separator: x; begin a document with a line that holds only ---")
	_, err = manifest.Objects([]string{"-"}, strings.NewReader("a\n---\na\n"))
	assert.EqualError(t, err, "standard input, document 1, line 1: not a Kubernetes object; it needs apiVersion, kind and metadata\n"+
		"standard input, document 2, line 3: not a Kubernetes object; it needs apiVersion, kind and metadata")
}

func TestTooLargeFilesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(file, []byte(pod), 0o600))
	require.NoError(t, os.Truncate(file, 1<<40)) // sparse: reading it would take all memory
	_, err := manifest.Objects([]string{file}, nil)
	assert.EqualError(t, err, file+": larger than 10 MiB; split it into several files")

	_, err = manifest.Objects([]string{"-"}, endless{})
	assert.EqualError(t, err, "standard input: larger than 10 MiB; split it into several files")
}

// endless is a stream of comments without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("#\n"), len(p)/2+1)), nil
}

// Kubernetes mounts a ConfigMap as links into a hidden folder.
func TestMountedConfigMapIsReadOnce(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "..2026_11_01/pod.yaml"), pod)
	require.NoError(t, os.Symlink("..2026_11_01", filepath.Join(folder, "..data")))
	require.NoError(t, os.Symlink("..data/pod.yaml", filepath.Join(folder, "pod.yaml")))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(folder, link))
	for _, path := range []string{folder, link} {
		objects, err := manifest.Objects([]string{path}, nil)
		require.NoError(t, err)
		require.Len(t, objects, 1)
		assert.Equal(t, filepath.Join(path, "pod.yaml"), objects[0].File)
	}
}

func TestUnreadableFilesAreNamed(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Symlink("nowhere", filepath.Join(folder, "a.yaml")))
	_, err := manifest.Objects([]string{folder}, nil)
	assert.ErrorContains(t, err, filepath.Join(folder, "a.yaml"))
}

func TestMissingStandardInput(t *testing.T) {
	_, err := manifest.Objects([]string{"-"}, nil)
	assert.EqualError(t, err, "standard input: holds no object; write one or leave the file out")
}
