package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane/registry"
	"warmpool.sh/test/harness/needs"
)

const (
	notebook     = "example.com/notebook:1"
	notebookSize = 20 << 20
	gpu          = corev1.ResourceName("nvidia.com/gpu")
)

// TestRealNodesAreAvailable takes a moment, and fails where real nodes are required and missing.
func TestRealNodesAreAvailable(t *testing.T) { needs.Check(t, needs.RealNodes, RealNodes()) }

func TestNodes(t *testing.T) {
	needRealNodes(t)
	c := start(t, Options{ControllerManager: true, Scheduler: true})
	nodes, err := c.StartNodes(t.Context(),
		NodeSpec{Name: "warm", Labels: map[string]string{"example.com/pool": "a"}},
		NodeSpec{Name: "cold", Taints: []corev1.Taint{{Key: "example.com/cold", Effect: corev1.TaintEffectNoSchedule}}})
	require.NoError(t, err)
	image, err := registry.NewImage(nodes.Program, notebookSize, "1")
	require.NoError(t, err)
	nodes.Registry.Push(notebook, image)
	warm, cold := nodes.Node("warm"), nodes.Node("cold")

	t.Run("they register with their labels and taints", func(t *testing.T) {
		var node corev1.Node
		require.NoError(t, c.client.Get(t.Context(), client.ObjectKey{Name: "warm"}, &node))
		assert.Equal(t, "a", node.Labels["example.com/pool"])
		require.NoError(t, c.client.Get(t.Context(), client.ObjectKey{Name: "cold"}, &node))
		require.Len(t, node.Spec.Taints, 1)
		assert.Equal(t, "example.com/cold", node.Spec.Taints[0].Key)
	})
	t.Run("each node pulls an image once", func(t *testing.T) {
		for _, node := range []*Node{warm, cold} {
			assert.Contains(t, run(t, c, node, "first", nil), "Successfully pulled image")
			pulled := nodes.Registry.Pulled(node.IP)
			assert.Greater(t, pulled, int64(notebookSize))
			assert.Contains(t, run(t, c, node, "second", nil), "already present on machine")
			assert.Equal(t, pulled, nodes.Registry.Pulled(node.IP))
		}
	})
	t.Run("a node that forgot an image pulls it again", func(t *testing.T) {
		for _, name := range []string{"first", "second"} {
			require.NoError(t, c.client.Delete(t.Context(), pod(warm, name, nil)))
		}
		require.NoError(t, warm.Forget(t.Context(), notebook))
		before := nodes.Registry.Pulled(warm.IP)
		assert.Contains(t, run(t, c, warm, "third", nil), "Successfully pulled image")
		assert.Greater(t, nodes.Registry.Pulled(warm.IP)-before, int64(notebookSize))
	})
	t.Run("a pod gets a GPU where there is one", func(t *testing.T) {
		require.NoError(t, warm.SetExtendedResource(t.Context(), gpu, 1))
		run(t, c, warm, "gpu", corev1.ResourceList{gpu: resource.MustParse("1")})
	})
	t.Run("a node that cannot start says why", func(t *testing.T) {
		_, err := nodes.Start(t.Context(), NodeSpec{Name: "bad", Labels: map[string]string{"kubernetes.io/forbidden": ""}})
		require.ErrorContains(t, err, "start node bad: ")
		require.ErrorContains(t, err, "kubernetes.io/forbidden", "the error shows the log")
		assert.Nil(t, nodes.Node("bad"))
		assert.NoDirExists(t, filepath.Join(nodes.dir, "bad"))
	})
	t.Run("a node may be larger than the machine", func(t *testing.T) {
		large, err := nodes.Start(t.Context(), NodeSpec{Name: "large", CPUs: 48, Memory: 192 << 30})
		require.NoError(t, err)
		run(t, c, large, "large", corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("40"), corev1.ResourceMemory: resource.MustParse("150Gi"),
		})
		require.NoError(t, large.Stop())
		assert.Nil(t, nodes.Node("large"))
	})
	t.Run("stop leaves nothing", func(t *testing.T) {
		before := traces(t, nodes)
		require.NotEmpty(t, before)
		require.NoError(t, nodes.Stop())
		for _, left := range before {
			require.Eventually(t, func() bool { return len(left(t)) == 0 }, limit, step, "%v", left(t))
		}
		require.NoError(t, nodes.Stop(), "a second call does nothing")
	})
}

func TestNodesEndWithAKilledParent(t *testing.T) {
	needRealNodes(t)
	pids, dirs := killParent(t, "nodes")
	require.Len(t, dirs, 2)
	hierarchies, err := cgroupHierarchies()
	require.NoError(t, err)
	var cgroups []string
	for _, hierarchy := range hierarchies {
		cgroups = append(cgroups, filepath.Join(hierarchy, filepath.Base(dirs[1])))
		assert.DirExists(t, cgroups[len(cgroups)-1])
	}
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !running(pid) }, limit, step, "process %d outlives its parent", pid)
	}
	require.NoError(t, removeLeftovers(hierarchies))
	for _, left := range append(cgroups, dirs[1]) {
		assert.NoDirExists(t, left)
	}
}

func needRealNodes(t *testing.T) {
	t.Helper()
	needs.Check(t, needs.RealNodes, RealNodes())
	needs.Check(t, needs.ControlPlane, Ready(t.Context(), Options{ControllerManager: true, Scheduler: true}))
	needs.Check(t, needs.ControlPlane, NodesReady(t.Context()))
}

// run waits until a pod runs, and returns what the kubelet said of its image.
func run(t *testing.T, c *ControlPlane, node *Node, name string, amounts corev1.ResourceList) string {
	t.Helper()
	ctx, pod := t.Context(), pod(node, name, amounts)
	require.NoError(t, c.client.Create(ctx, pod))
	var pulled string
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		require.NoError(t, c.client.Get(ctx, client.ObjectKeyFromObject(pod), pod))
		var events corev1.EventList
		require.NoError(t, c.client.List(ctx, &events, client.InNamespace(pod.Namespace)))
		said := ""
		for _, event := range events.Items {
			if event.InvolvedObject.UID == pod.UID {
				said += event.Reason + ": " + event.Message + "\n"
				if event.Reason == "Pulled" {
					pulled = event.Message
				}
			}
		}
		require.Equal(t, corev1.PodRunning, pod.Status.Phase, said)
		require.NotEmpty(t, pulled)
	}, limit, step)
	return pulled
}

func pod(node *Node, name string, amounts corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: node.Name + "-" + name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node.Name},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "notebook", Image: notebook,
				Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
			}},
		},
	}
}

// traces finds what nodes have on this machine, as functions that look again.
func traces(t *testing.T, nodes *Nodes) []func(*testing.T) []string {
	t.Helper()
	glob := func(pattern string) func(*testing.T) []string {
		return func(t *testing.T) []string {
			paths, err := filepath.Glob(pattern)
			require.NoError(t, err)
			return paths
		}
	}
	found := []func(*testing.T) []string{glob(nodes.dir)}
	for _, hierarchy := range nodes.cgroups {
		found = append(found, glob(filepath.Join(hierarchy, filepath.Base(nodes.dir))), glob(filepath.Join(hierarchy, "k8s.io")))
	}
	var spaces []string
	require.NoError(t, nodes.network.thread.do(func() error {
		space, err := os.Readlink("/proc/thread-self/ns/net")
		spaces = append(spaces, space)
		return err
	}))
	for _, node := range nodes.nodes {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/ns/*", node.child.cmd.Process.Pid))
		require.NoError(t, err)
		for _, link := range links {
			space, err := os.Readlink(link)
			require.NoError(t, err)
			if own, err := os.Readlink(filepath.Join("/proc/self/ns", filepath.Base(link))); err != nil || own != space {
				spaces = append(spaces, space)
			}
		}
	}
	require.Len(t, spaces, 1+7*len(nodes.nodes), "six kinds, and the one of children twice")
	return append(found, func(t *testing.T) []string { return inNamespaces(t, spaces) })
}

// inNamespaces lists the threads of this machine that are in one of the namespaces.
func inNamespaces(t *testing.T, spaces []string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/task/*/ns/*")
	require.NoError(t, err)
	var in []string
	for _, link := range links {
		space, err := os.Readlink(link)
		if err == nil && slices.Contains(spaces, space) { // else the thread has ended
			in = append(in, link+" "+space)
		}
	}
	return in
}

// startForParent is what a parent starts that is about to be killed.
func startForParent(ctx context.Context, what string) (dirs []string, children []*child, err error) {
	c, err := Start(ctx, Options{ControllerManager: what == "nodes", Log: os.Stderr})
	if err != nil {
		return nil, nil, err
	}
	if what != "nodes" {
		return []string{c.Dir}, c.children, nil
	}
	nodes, err := c.StartNodes(ctx, NodeSpec{Name: "n"})
	if err != nil {
		return nil, nil, err
	}
	return []string{c.Dir, nodes.dir}, c.children, nil
}
