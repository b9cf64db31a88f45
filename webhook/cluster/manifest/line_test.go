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

func TestLoadGoesOn(t *testing.T) {
	text := pod + "---\nkind: Pod\napiVersion: [\n---\n" + strings.ReplaceAll(pod, "w1", "w2") + "---\n" + pod +
		"---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {taints: wrong}\n"
	reading := manifest.Load([]string{"-", "absent.yaml"}, strings.NewReader(text), manifest.Options{})
	require.Error(t, reading.Err())
	for _, part := range []string{
		"absent.yaml: no such file or folder", "standard input, document 2, line 7: neither YAML nor JSON",
		"standard input, document 5 (Node n1): spec.taints",
	} {
		assert.ErrorContains(t, reading.Err(), part)
	}
	assert.Len(t, reading.Refused, 1)
	assert.Len(t, reading.Broken, 2)
	assert.NotNil(t, reading.Snapshot.Pods.Get("default/w2"))
	assert.NotNil(t, reading.Snapshot.Pods.Get("default/w1"), "the same twice is the same")
	assert.Nil(t, reading.Snapshot.Nodes.Get("n1"))
	assert.Contains(t, reading.Snapshot.Nodes.Malformed("n1"), "spec.taints")

	reading = manifest.Load([]string{"-"}, strings.NewReader(pod), manifest.Options{})
	require.NoError(t, reading.Err())
	assert.Len(t, reading.Objects, 1)
	assert.True(t, reading.Snapshot.Nodes.Known())
}
