package warmlabels

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// occupied are the nodes that have Workspaces; nil: not known.
type occupied map[string]bool

func (o occupied) Has(node string) (has, known bool) { return o[node], o != nil }
func (o occupied) Version() uint64                   { return uint64(len(o)) }

func TestCost(t *testing.T) {
	for _, test := range []struct {
		name, now string
		at        state
		nodes     occupied
		want      string
	}{
		{name: "not warm", at: pulling, nodes: occupied{"n": true}},
		{name: "no longer warm", now: costBeside, at: failed, nodes: occupied{"n": true}},
		{name: "alone", at: warm, nodes: occupied{"other": true}, want: costAlone},
		{name: "beside a Workspace", at: warm, nodes: occupied{"n": true}, want: costBeside},
		{name: "the Workspace has gone", now: costBeside, at: warm, nodes: occupied{}, want: costAlone},
		{name: "nothing tells of Workspaces", now: costBeside, at: warm, want: costBeside},
		{name: "nothing tells, and there is none", at: warm},
		{name: "somebody else's", now: "-5", at: warm, nodes: occupied{"n": true}, want: "-5"},
		{name: "somebody else's, not warm", now: "7", at: pulling, nodes: occupied{}, want: "7"},
		{name: "somebody else's, and no number", now: "x", at: warm, nodes: occupied{}, want: "x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
			if test.now != "" {
				pod.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{corev1.PodDeletionCost: test.now}}
			}
			assert.Equal(t, test.want, cost(pod, test.at, test.nodes))
		})
	}
}

// The cost goes with the labels; alone it waits until the pod has rested.
func TestFewWritesOfCosts(t *testing.T) {
	r := newRig(t, pulls(ended(0, "Completed")))
	nodes := occupied{}
	r.controller.occupants = nodes
	r.look()
	r.look()
	assert.Len(t, r.patches, 1)
	assert.Contains(t, r.patches[0], `"annotations":{"controller.kubernetes.io/pod-deletion-cost":"100"}`)
	assert.Contains(t, r.patches[0], `"warmpool.sh/warm":"true"`)

	pod := r.server["overprovisioning/cpu-warm-6d5f-0"]
	nodes[pod.Spec.NodeName] = true
	assert.Equal(t, rest, r.look())
	assert.Len(t, r.patches, 1)
	delete(nodes, pod.Spec.NodeName) // it was there for a moment
	assert.Zero(t, r.look())
	nodes[pod.Spec.NodeName] = true
	r.now = r.now.Add(rest + time.Second)
	assert.Zero(t, r.look())
	assert.Len(t, r.patches, 2)
	assert.JSONEq(t, `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"200"},"uid":"cpu-warm-6d5f-0"}}`, r.patches[1])

	r.status(0, waits("ImagePullBackOff")) // labels do not wait
	r.look()
	assert.Len(t, r.patches, 3)
	assert.Contains(t, r.patches[2], `"controller.kubernetes.io/pod-deletion-cost":null`)
}
