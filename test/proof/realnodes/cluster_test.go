package proof_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/controlplane/registry"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

const (
	replicas  = 2
	imageSize = 50 << 20
	cpuImage  = "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu"
	gpuImage  = "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu"
	newImage  = "public.ecr.aws/sagemaker/sagemaker-distribution:3.3.0-cpu"
	poolLabel = "karpenter.sh/nodepool"
	gpu       = corev1.ResourceName("nvidia.com/gpu")
)

// cluster is a control plane with real nodes, and a warmpool of two replicas as it ships, for the pools of the example.
type cluster struct {
	*controlplane.ControlPlane
	admin client.WithWatch
	nodes *controlplane.Nodes
	root  string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	needs.Check(t, needs.RealNodes, controlplane.RealNodes())
	needs.Check(t, needs.ControlPlane, controlplane.NodesReady(t.Context()))
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{ControllerManager: true, Scheduler: true}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true, Scheduler: true, Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	c := &cluster{ControlPlane: plane}
	c.admin, err = client.NewWithWatch(plane.Config, client.Options{})
	require.NoError(t, err)
	c.root, err = install.Root()
	require.NoError(t, err)
	c.nodes, err = plane.StartNodes(t.Context(), cpuNode("cpu-1", "us-west-2a"), cpuNode("cpu-2", "us-west-2b"), gpuNode("gpu-1", "us-west-2a"))
	require.NoError(t, err)
	require.NoError(t, c.nodes.Node("gpu-1").SetExtendedResource(t.Context(), gpu, 1))
	c.push(t, "registry.k8s.io/pause:3.10.1", 0)
	c.push(t, cpuImage, imageSize)
	c.push(t, gpuImage, imageSize)
	c.install(t)
	return c
}

// push makes an image, which is another one for every reference.
func (c *cluster) push(t *testing.T, reference string, size int) {
	t.Helper()
	image, err := registry.NewImage(c.nodes.Program, size, reference)
	require.NoError(t, err)
	c.nodes.Registry.Push(reference, image)
}

// The nodes of the example are of these sizes.
func cpuNode(name, zone string) controlplane.NodeSpec {
	return controlplane.NodeSpec{Name: name, CPUs: 48, Memory: 195991456 << 10, Labels: labelsOf("spaces-cpu", "ml.m5.12xlarge", zone)}
}

func gpuNode(name, zone string) controlplane.NodeSpec {
	return controlplane.NodeSpec{
		Name: name, CPUs: 32, Memory: 130696000 << 10, Labels: labelsOf("spaces-gpu", "ml.g5.8xlarge", zone),
		Taints: []corev1.Taint{{Key: string(gpu), Value: "true", Effect: corev1.TaintEffectNoSchedule}},
	}
}

func labelsOf(pool, instanceType, zone string) map[string]string {
	return map[string]string{
		poolLabel: pool, "karpenter.sh/capacity-type": "on-demand",
		corev1.LabelInstanceTypeStable: instanceType, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "us-west-2",
	}
}

// install applies what ships and starts the replicas. The cluster-proportional autoscaler stays out, as its image is not
// in the registry: the test scales the placeholders itself.
func (c *cluster) install(t *testing.T) {
	t.Helper()
	crds, err := install.CRDs(c.root)
	require.NoError(t, err)
	shipped, err := install.Render(filepath.Join(c.root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	service, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, service.Close()) })
	_, port, err := net.SplitHostPort(service.Addr().String())
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	local, err := install.Localize(shipped, number)
	require.NoError(t, err)
	local = slices.DeleteFunc(local, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && strings.Contains(o.GetName(), "-cpa-")
	})
	require.NoError(t, c.Apply(t.Context(), slices.Concat(crds, c.examples(t), local)...))
	binary, err := install.Build(t.Context(), c.root, c.Dir)
	require.NoError(t, err)
	var ports []int
	for range replicas {
		port, err := controlplane.FreePort()
		require.NoError(t, err)
		_, err = install.Start(t.Context(), c.ControlPlane, binary, shipped, port)
		require.NoError(t, err)
		ports = append(ports, port)
	}
	go serve(service, ports)
}

// examples are the namespaces, NodePools and templates of the example cluster.
func (c *cluster) examples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "templates.yaml"} {
		all = append(all, c.read(t, "manifests", "examples", "fine", name)...)
	}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "HyperpodNodeClass" || o.GetKind() == "PriorityClass"
	})
}

func (c *cluster) read(t *testing.T, path ...string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{c.root}, path...)...))
	require.NoError(t, err)
	objects, err := controlplane.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	return objects
}

// serve is to the API server what a Service is: connections go to the ports in turn.
func serve(service net.Listener, ports []int) {
	var turn atomic.Int64
	for {
		near, err := service.Accept()
		if err != nil {
			return // closed
		}
		far, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(ports[int(turn.Add(1))%len(ports)]))
		if err != nil {
			_ = near.Close() // the API server sees that no one is there
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = near.Close(), far.Close()
			}()
		}
	}
}
