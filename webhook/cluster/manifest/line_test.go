package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/cluster/manifest"
)

const lined = `# A comment, and an empty document.
---

---
# Another comment.
apiVersion: v1
kind: Pod
metadata:
  name: w1
  labels: {a: b,
    example.com/key: value}
spec:
  containers:
  - name: one
    image: one:1

  - name: two
    image: two:1
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: w2}}
- apiVersion: v1
  kind: Pod
  metadata: &meta
    name: w3
  spec: {nodeName: n1}
`

func TestLineOfFields(t *testing.T) {
	for name, text := range map[string]string{"LF": lined, "CR LF": strings.ReplaceAll(lined, "\n", "\r\n")} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Objects([]string{"-"}, strings.NewReader(text))
			require.NoError(t, err)
			require.Len(t, objects, 3)
			for field, line := range map[string]int{
				"": 6, "kind": 7, "metadata.name": 9, "metadata.labels[example.com/key]": 11, "metadata.labels[absent]": 10,
				"spec.containers[1].image": 18, "spec.containers[1]": 17, "spec.containers[2].image": 13, "spec.affinity.nodeAffinity": 12,
				"spec.containers[-1]": 13, "spec.containers[x": 13, "..[]": 6, "status": 6,
			} {
				assert.Equal(t, line, objects[0].Line(field), "field %q", field)
			}
			assert.Equal(t, 23, objects[1].Line(""))
			assert.Equal(t, 24, objects[2].Line(""))
			assert.Equal(t, 28, objects[2].Line("spec.nodeName"))
		})
	}
}

func TestLineOfJSONObjects(t *testing.T) {
	text := "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"w1\"}}\n\n" +
		"{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\n\t\t\"name\": \"w2\"\n\t}\n}\n"
	objects, err := manifest.Objects([]string{"-"}, strings.NewReader(text))
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, 1, objects[0].Line("metadata.name"))
	assert.Equal(t, 3, objects[1].Line(""))
	assert.Equal(t, 7, objects[1].Line("metadata.name"))
}

func TestLineOfWhatWasNotRead(t *testing.T) {
	assert.Equal(t, 0, manifest.Object{}.Line("spec"))
}

func TestReadGoodGoesOn(t *testing.T) {
	text := pod + "---\nkind: [\n---\n" + strings.ReplaceAll(pod, "w1", "w2") + "---\n" + pod +
		"---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {taints: wrong}\n"
	snapshot, objects, err := manifest.ReadGood([]string{"-", "absent.yaml"}, strings.NewReader(text))
	require.Error(t, err)
	for _, part := range []string{
		"absent.yaml: no such file or folder", "standard input, document 2, line 6: neither YAML nor JSON",
		"standard input, document 4 (Pod default/w1): the same object is in standard input, document 1",
		"standard input, document 5 (Node n1): spec.taints",
	} {
		assert.ErrorContains(t, err, part)
	}
	assert.Len(t, objects, 3)
	assert.NotNil(t, snapshot.Pods.Get("default/w2"))
	assert.Nil(t, snapshot.Nodes.Get("n1"))
	assert.Contains(t, snapshot.Nodes.Malformed("n1"), "spec.taints")

	snapshot, objects, err = manifest.ReadGood([]string{"-"}, strings.NewReader(pod))
	require.NoError(t, err)
	assert.Len(t, objects, 1)
	assert.True(t, snapshot.Nodes.Known())
}
