package placement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

func TestNamespacesThatMayUseAPool(t *testing.T) {
	research := &metav1.LabelSelector{MatchLabels: map[string]string{"research": "true"}}
	byName := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "team-b"}}
	cfg := &config.WarmPoolConfiguration{Pools: []config.Pool{
		{Name: "research", NodePools: []string{"a"}, NamespaceSelector: research, Templates: []config.TemplateRef{{Namespace: "shared", Name: "large"}}},
		{Name: "b", NodePools: []string{"b"}, NamespaceSelector: byName},
		{Name: "open", NodePools: []string{"c"}},
	}}
	namespaces := map[string]*corev1.Namespace{}
	for name, labels := range map[string]map[string]string{"team-a": {"research": "true"}, "team-b": nil, "team-c": {"research": "false"}} {
		namespaces[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	pools := placement.Compile(cfg, &cluster.Snapshot{Namespaces: cluster.Known(namespaces)}, placement.Seen{})
	large := placement.TemplateLabels(nil, "shared", "large")
	for _, c := range []struct {
		namespace       string
		labels          map[string]string
		want            string
		barred, unknown bool
	}{
		{"team-a", nil, "research", false, false},
		{"team-b", nil, "b", false, false},
		{"team-c", nil, "open", false, false},
		{"team-d", nil, "open", false, false},
		{"team-a", large, "research", false, false},
		{"team-c", large, "", true, false},
		{"team-d", large, "", true, true},
		{"team-a", map[string]string{placement.PoolLabel: "b"}, "", true, false},
		{"team-b", map[string]string{placement.PoolLabel: "b"}, "b", false, false},
		{"team-b", map[string]string{placement.PoolLabel: "open"}, "open", false, false},
		{"team-d", map[string]string{placement.PoolLabel: "research"}, "", true, true},
	} {
		choice := pools.ForPodIn(c.namespace, c.labels, &corev1.PodSpec{})
		got := ""
		if choice.Pool != nil {
			got = choice.Pool.Config.Name
		}
		assert.Equal(t, c.want, got, "%s %v", c.namespace, c.labels)
		assert.Equal(t, c.barred, choice.Barred, "%s %v", c.namespace, c.labels)
		assert.Equal(t, c.unknown, choice.Unknown, "%s %v", c.namespace, c.labels)
		assert.Equal(t, c.barred, choice.Problem != "", "%s %v", c.namespace, c.labels)
	}
	assert.Equal(t, "namespace team-c may not use pool research, which is for namespaces with research=true", pools.ForPodIn("team-c", large, &corev1.PodSpec{}).Problem)
}
