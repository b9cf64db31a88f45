package cluster_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"warmpool.sh/webhook/cluster"
)

func TestDecodeNamesTheField(t *testing.T) {
	tests := []struct{ name, pod, want string }{
		{"wrong type", `spec: {containers: [{name: a}, {name: b, image: 5}]}`,
			`spec.containers[1].image: got a value of type number, want a string (put the value in quotes)`},
		{"object instead of list", `spec: {tolerations: {key: a}}`,
			`spec.tolerations: got a value of type object, want a list (- value)`},
		{"list instead of string", `spec: {nodeName: [a, b]}`,
			`spec.nodeName: got a value of type array, want a string (put the value in quotes)`},
		{"string instead of number", `spec: {priority: high}`,
			`spec.priority: got a value of type string, want a whole number`},
		{"number that is too large", `spec: {priority: 5000000000}`,
			`spec.priority: got a value of type number 5000000000, want a whole number`},
		{"fraction instead of number", `spec: {priority: 1.5}`,
			`spec.priority: got a value of type number 1.5, want a whole number`},
		{"text instead of object", `spec: {nodeSelector: gpu}`,
			`spec.nodeSelector: got a value of type string, want an object (key: value)`},
		{"text instead of boolean", `spec: {hostNetwork: "yes"}`,
			`spec.hostNetwork: got a value of type string, want true or false`},
		{"label value", `metadata: {labels: {a: b, gpu: true}}`,
			`metadata.labels.gpu: got a value of type bool, want a string (put the value in quotes)`},
		{"quantity", `spec: {containers: [{name: a}, {name: b}, {name: c, resources: {requests: {cpu: 1, memory: 4 GB}}}]}`,
			`spec.containers[2].resources.requests.memory: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
		{"quantity that takes long", `{spec: {containers: [{name: a}, {resources: {requests: {cpu: 1, memory: "1e-999999999"}}}], volumes: 5}}`,
			`spec.containers[1].resources.requests.memory: a quantity's exponent must have at most two digits, because others take minutes to parse; write it as 500m or 16Gi, for example`},
		{"time", `metadata: {creationTimestamp: yesterday}`,
			`metadata.creationTimestamp: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := cluster.Decode(content(t, test.pod), &corev1.Pod{})
			assert.EqualError(t, err, test.want)
		})
	}
}

func TestDecodeReportsUnknownFields(t *testing.T) {
	var pod corev1.Pod
	unknown, err := cluster.Decode(content(t, `spec: {containers: [{name: a, imgae: x}], nodeNam: y, nodeName: z}`), &pod)
	require.NoError(t, err)
	assert.Equal(t, []string{`unknown field "spec.containers[0].imgae"`, `unknown field "spec.nodeNam"`}, texts(unknown))
	assert.Equal(t, "z", pod.Spec.NodeName)
}

// A wide object must not cost one decoding per field.
func TestDecodeOfWideObjectIsCheap(t *testing.T) {
	annotations := map[string]any{}
	for i := range 20_000 {
		annotations[fmt.Sprintf("key-%05d", i)] = "value"
	}
	annotations["key-12345"] = int64(1)
	_, err := cluster.Decode(map[string]any{"metadata": map[string]any{"annotations": annotations}}, &corev1.Pod{})
	assert.ErrorContains(t, err, "metadata.annotations.key-12345: ")
}

func content(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	return object
}

func texts(unknown []cluster.UnknownField) []string {
	var all []string
	for _, err := range unknown {
		all = append(all, err.Error())
	}
	return all
}
