package controlplane

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecode(t *testing.T) {
	objs, err := Decode(strings.NewReader(`# a comment alone
---
apiVersion: v1
kind: Namespace
metadata: {name: one}
---
---
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "two"}},
  {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "three"}}]}
`))
	require.NoError(t, err)
	var names []string
	for _, obj := range objs {
		names = append(names, obj.GetKind()+" "+obj.GetName())
	}
	assert.Equal(t, []string{"Namespace one", "Secret two", "Secret three"}, names)
}

func TestDecodeSaysWhichDocumentIsBad(t *testing.T) {
	for _, bad := range []string{"a: b: c", "metadata: {name: x}", "- a list"} {
		_, err := Decode(strings.NewReader("apiVersion: v1\nkind: Namespace\n---\n" + bad + "\n"))
		assert.ErrorContains(t, err, "document 2", bad)
	}
}
