// Package scheduler_test holds the arithmetic of webhook/sizing against what the real kube-scheduler decides: at what
// is available, one unit above and clearly below, for every resource of every kind of node and for many templates.
package scheduler_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/webhook/sizing"
)

const (
	startLimit = 30 * time.Minute // programs may have to be built first
	limit      = 60 * time.Second // for anything that is waited for
	step       = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime prints a stack trace after 30 s
	os.Exit(m.Run())
}

func TestSizingAgreesWithScheduler(t *testing.T) {
	c := startCluster(t)
	t.Run("DaemonSets run where sizing counts them", c.checkDaemons)
	t.Run("one pool with two types", c.checkTwoTypes)
	t.Run("a node takes as many pods as sizing says", c.checkPodCount)
	t.Run("a resource that no node names", c.checkUnknown)
	t.Run("placement and the scheduler agree on node selection", c.checkPlacement)

	book, plain := &ledger{}, 0
	t.Run("templates", func(t *testing.T) {
		for _, kind := range c.kinds {
			all := slices.Concat(plainTemplates(c.shapes[kind.Name]), c.templatesOn(kind.Name))
			plain += len(all) - len(c.templatesOn(kind.Name))
			for i := range kind.Count {
				node := kind.nodeName(i)
				t.Run(node, func(t *testing.T) {
					t.Parallel()
					for n, tmpl := range all {
						if n%kind.Count == i {
							t.Run(tmpl.Name, func(t *testing.T) { c.compare(t, book, kind, node, tmpl) })
						}
					}
				})
			}
		}
	})
	t.Logf("%d comparisons\n%s", len(book.lines), book.table())
	assert.Len(t, book.lines, 3*(plain+len(c.templates)), "every template is compared three times")
}

// startCluster starts everything, makes nodes, lets the DaemonSets' pods be bound, and sizes the pools.
func startCluster(t *testing.T) *testCluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true}))
	plane, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true, Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	config := rest.CopyConfig(plane.Config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // some templates are odd on purpose
	admin, err := client.New(config, client.Options{})
	require.NoError(t, err)
	c := &testCluster{plane: plane, admin: admin, shapes: map[string]*sizing.Shape{}}
	c.furnish(t)
	c.size(t)
	return c
}

// checkDaemons compares the DaemonSets of each shape with the pods that the controller really made.
func (c *testCluster) checkDaemons(t *testing.T) {
	var pods corev1.PodList
	require.NoError(t, c.admin.List(t.Context(), &pods, client.HasLabels{daemonLabel}))
	bound := map[string][]string{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		bound[pod.Spec.NodeName] = append(bound[pod.Spec.NodeName], pod.Namespace+"/"+pod.Labels[daemonLabel])
	}
	require.Empty(t, bound[""], "all are bound")
	for _, kind := range c.kinds {
		var counted []string
		for _, d := range c.shapes[kind.Name].Daemons {
			counted = append(counted, d.Name)
		}
		for i := range kind.Count {
			assert.ElementsMatch(t, bound[kind.nodeName(i)], counted, kind.nodeName(i))
		}
	}
}

// checkTwoTypes gives the pool a pod that fits only the type without the additional DaemonSet, and then one that fits
// neither.
func (c *testCluster) checkTwoTypes(t *testing.T) {
	small, large := c.shapes["gpu-xlarge"], c.shapes["gpu-2xlarge"]
	difference := large.Offers[corev1.ResourceCPU].Available.DeepCopy()
	difference.Sub(small.Offers[corev1.ResourceCPU].Available)
	assert.Equal(t, "250m", difference.String(), "what the DaemonSet of one type asks for")

	available := large.Offers[corev1.ResourceCPU].Available
	for _, want := range []struct {
		cpu  resource.Quantity
		node string
	}{
		{available, "gpu-2xlarge-0"},
		{plus(available, resource.MustParse("1m")), ""},
	} {
		pod := podOf("default", corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: want.cpu},
		}}}}, map[string]string{poolLabel: "gpu"})
		request := sizing.Request(&pod.Spec, pod.Namespace, c.facts)
		got := c.decide(t, pod)
		assert.Equal(t, want.node, got.node, "cpu %s", want.cpu.String())
		assert.NotEmpty(t, small.Shortfalls(request))
		assert.Equal(t, want.node != "", len(large.Shortfalls(request)) == 0)
	}
}

// checkPodCount fills a node with pods that ask for nothing.
func (c *testCluster) checkPodCount(t *testing.T) {
	for kind, room := range map[string]int64{"pods-none-left": 0, "pods-one-left": 1, "pods-some-left": 9} {
		shape := c.shapes[kind]
		offer := shape.Offers[corev1.ResourcePods]
		require.Equal(t, room, offer.Available.Value(), kind)
		for left := room; left >= 0; left-- {
			pod := podOf("default", corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}, map[string]string{corev1.LabelHostname: kind + "-0"})
			require.NoError(t, c.admin.Create(t.Context(), pod))
			got := c.await(t, pod)
			assert.Equal(t, left > 0, got.node != "", "%s: with %d of %d left: %s", kind, left, room, got.message)
			if left == room { // an empty node is what sizing judges by
				short := resourcesOf(shape.Shortfalls(sizing.Request(&pod.Spec, pod.Namespace, c.facts)))
				assert.Equal(t, short, got.insufficient, kind)
			}
			t.Cleanup(func() { c.remove(t, pod) })
		}
	}
}

// checkUnknown asks for what nodes do not name: to the scheduler they have none of it, and sizing says that it does not
// know of it.
func (c *testCluster) checkUnknown(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	pod := podOf("default", corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{gpu: resource.MustParse("1")},
	}}}}, map[string]string{poolLabel: "cpu"})
	shape, request := c.shapes["cpu"], sizing.Request(&pod.Spec, pod.Namespace, c.facts)
	got := c.decide(t, pod)
	assert.Empty(t, got.node)
	assert.Equal(t, []corev1.ResourceName{gpu}, slices.Compact(got.insufficient), got.message)
	assert.Equal(t, []corev1.ResourceName{gpu}, shape.Unknown(request))
	assert.Empty(t, shape.Shortfalls(request))
}
