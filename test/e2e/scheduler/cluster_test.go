package scheduler_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

const (
	poolLabel   = "karpenter.sh/nodepool"
	daemonLabel = "scheduler.test/daemon"
	image       = "example.com/image:1"
)

// testCluster is a real control plane with nodes, DaemonSets and what sizing makes of them.
type testCluster struct {
	plane     *controlplane.ControlPlane
	admin     client.Client
	kinds     []nodeKind
	templates []template
	facts     *cluster.Snapshot
	shapes    map[string]*sizing.Shape // by kind of node
}

// nodeKind is some nodes that are alike.
type nodeKind struct {
	Name        string              `json:"name"`
	Pool        string              `json:"pool"`
	Type        string              `json:"type"`
	Count       int                 `json:"count"`
	Taints      []corev1.Taint      `json:"taints"`
	Allocatable corev1.ResourceList `json:"allocatable"`
}

func (k *nodeKind) nodeName(i int) string { return fmt.Sprintf("%s-%d", k.Name, i) }

// daemon is a DaemonSet in few words.
type daemon struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Spec      corev1.PodSpec `json:"spec"`
}

func (c *testCluster) furnish(t *testing.T) {
	t.Helper()
	objects, err := os.ReadFile("testdata/objects.yaml")
	require.NoError(t, err)
	decoded, err := controlplane.Decode(bytes.NewReader(objects))
	require.NoError(t, err)
	require.NoError(t, c.plane.Apply(t.Context(), decoded...))
	load(t, "testdata/templates.yaml", &c.templates)
	load(t, "testdata/nodes.yaml", &c.kinds)
	for _, kind := range c.kinds {
		for i := range kind.Count {
			require.NoError(t, c.plane.CreateNode(t.Context(), kind.node(i)))
		}
	}
	// The controller makes a DaemonSet's pods for the nodes that it knows of at that moment.
	c.eventually(t, "all nodes are ready", c.nodesReady)
	c.eventually(t, "every namespace has its ServiceAccount", c.accountsMade)
	var daemons []daemon
	load(t, "testdata/daemonsets.yaml", &daemons)
	for i := range daemons {
		require.NoError(t, c.admin.Create(t.Context(), daemons[i].daemonSet()))
	}
	c.eventually(t, "the pods of all DaemonSets run", c.daemonsRun)
}

func load(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(data, into), path)
}

func (k *nodeKind) node(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        k.nodeName(i),
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				corev1.LabelHostname: k.nodeName(i), corev1.LabelInstanceTypeStable: k.Type, poolLabel: k.Pool,
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		},
		Spec:   corev1.NodeSpec{Taints: k.Taints},
		Status: corev1.NodeStatus{Capacity: k.Allocatable, Allocatable: k.Allocatable},
	}
}

func (d *daemon) daemonSet() *appsv1.DaemonSet {
	labels := map[string]string{daemonLabel: d.Name}
	namespace := d.Namespace
	if namespace == "" {
		namespace = "kube-system"
	}
	if d.Spec.Tolerations == nil {
		d.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	fillImages(&d.Spec)
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.Name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: d.Spec},
		},
	}
}

func fillImages(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Image = image
		}
	}
}

// eventually waits until problem has nothing to say.
func (c *testCluster) eventually(t *testing.T, what string, problem func(*testing.T) string) {
	t.Helper()
	last := ""
	ok := assert.Eventually(t, func() bool { last = problem(t); return last == "" }, limit, 5*step, what)
	require.True(t, ok, last)
}

func (c *testCluster) nodesReady(t *testing.T) string {
	var nodes corev1.NodeList
	if err := c.admin.List(t.Context(), &nodes); err != nil {
		return err.Error()
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		ready := false
		for _, condition := range node.Status.Conditions {
			ready = ready || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		}
		for _, taint := range node.Spec.Taints {
			ready = ready && taint.Key != corev1.TaintNodeNotReady
		}
		if !ready {
			return node.Name + " is not ready"
		}
	}
	return ""
}

func (c *testCluster) accountsMade(t *testing.T) string {
	var namespaces corev1.NamespaceList
	if err := c.admin.List(t.Context(), &namespaces); err != nil {
		return err.Error()
	}
	for _, namespace := range namespaces.Items {
		if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{}); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (c *testCluster) daemonsRun(t *testing.T) string {
	var sets appsv1.DaemonSetList
	if err := c.admin.List(t.Context(), &sets); err != nil {
		return err.Error()
	}
	for _, set := range sets.Items {
		status := &set.Status
		if status.ObservedGeneration == 0 || status.DesiredNumberScheduled == 0 || status.NumberReady != status.DesiredNumberScheduled {
			return fmt.Sprintf("DaemonSet %s has %d of %d pods ready", set.Name, status.NumberReady, status.DesiredNumberScheduled)
		}
	}
	return ""
}

// size reads the cluster as warmpool does and has sizing make shapes of it.
func (c *testCluster) size(t *testing.T) {
	t.Helper()
	facts, err := live.Read(t.Context(), c.plane.Config, func(*appsv1.Deployment) bool { return false })
	require.NoError(t, err)
	c.facts = facts
	cfg := &config.WarmPoolConfiguration{}
	seen := map[string]bool{}
	for _, kind := range c.kinds {
		if !seen[kind.Pool] {
			cfg.Pools = append(cfg.Pools, config.Pool{Name: kind.Pool, NodePools: []string{kind.Pool}})
		}
		seen[kind.Pool] = true
	}
	sizes := sizing.NewTracker(cfg).Update(c.facts)
	for i := range c.kinds {
		kind := &c.kinds[i]
		pool := sizes.Pool(kind.Pool)
		assert.Empty(t, pool.Problems, kind.Pool)
		for _, shape := range pool.Shapes {
			// Alike nodes have one shape, and the first by name stands for it.
			if shape.Offers[corev1.ResourceCPU].Node == kind.nodeName(0) {
				c.shapes[kind.Name] = shape
			}
		}
		require.Contains(t, c.shapes, kind.Name, "these nodes differ from others of their pool, but have no shape of their own")
	}
}
