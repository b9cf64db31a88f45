package sizing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Karpenter replaces nodes all the time: what is kept of those that are gone must not add up.
func TestNothingIsKeptOfNodesThatAreGone(t *testing.T) {
	ds := &appsv1.DaemonSet{}
	ds.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"}
	facts := &cluster.Snapshot{Nodes: cluster.Known[corev1.Node](nil), DaemonSets: cluster.Known(map[string]*appsv1.DaemonSet{"a/ds": ds})}
	tracker := NewTracker(&config.WarmPoolConfiguration{Pools: []config.Pool{{Name: "cpu", NodePools: []string{"cpu"}}}})
	for i := range 1000 {
		name := fmt.Sprintf("n%d", i)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{config.NodePoolLabel: "cpu", corev1.LabelHostname: name}}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
		next := *facts
		next.Nodes = facts.Nodes.With(map[string]*corev1.Node{name: n, fmt.Sprintf("n%d", i-1): nil})
		tracker.Update(&next)
		facts = &next
	}
	assert.Less(t, len(tracker.classifier.known), 110)
	assert.Equal(t, 1, tracker.nodes.len())
	assert.LessOrEqual(t, len(tracker.renamed), 1)
}
