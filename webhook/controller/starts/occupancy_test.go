package starts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestOccupancy(t *testing.T) {
	o, changes := newOccupancy(), 0
	o.OnChange(func() { changes++ })
	pod := func(uid, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
	}
	says := func(node string, has, known bool) {
		t.Helper()
		gotHas, gotKnown := o.Has(node)
		assert.Equal(t, has, gotHas)
		assert.Equal(t, known, gotKnown)
	}
	o.see(pod("a", ""))
	says("n", false, false)
	o.see(pod("a", "n"))
	o.see(pod("a", "n"))
	o.see(pod("b", "n"))
	o.complete()
	says("n", true, true)
	assert.Equal(t, 2, changes, "the node, and that all are known")
	assert.Equal(t, uint64(2), o.Version())

	o.drop("a")
	o.drop("a")
	says("n", true, true)
	ended := pod("b", "n")
	ended.Status.Phase = corev1.PodSucceeded
	o.see(ended)
	o.see(ended)
	says("n", false, true)
	assert.Equal(t, 3, changes)

	o.see(pod("c", "m"))
	o.reset()
	says("m", false, false)
}
