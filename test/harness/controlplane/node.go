package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxNodes is how many nodes the addresses are enough for.
const maxNodes = 200

// NodeSpec says what a node registers with.
type NodeSpec struct {
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// CPUs and Memory, in bytes, are its capacity, which may be more than the
	// machine's: what pods request of it is not there. 0 stands for the machine's.
	CPUs   int
	Memory int64
}

// Node is one real node.
type Node struct {
	// Name of the Node object and of the host.
	Name string
	// IP is its address, by which Registry.Pulled knows it.
	IP string

	all    *Nodes
	spec   NodeSpec
	index  int
	dir    string
	cgroup string
	child  *child
	stop   func() error
}

// Start starts one more node and returns once it is Ready. It has no image.
func (n *Nodes) Start(ctx context.Context, spec NodeSpec) (*Node, error) {
	node, err := n.add(spec)
	if err != nil {
		return nil, err
	}
	if err := node.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", spec.Name, err), node.Stop())
	}
	return node, nil
}

func (n *Nodes) add(spec NodeSpec) (*Node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.added++ // no address is given twice: the registry counts by them
	index := n.added
	if index > maxNodes {
		return nil, fmt.Errorf("start node %s: this network has addresses for %d nodes", spec.Name, maxNodes)
	}
	node := &Node{
		Name: spec.Name, IP: fmt.Sprintf("10.99.0.%d", index+10), all: n, spec: spec, index: index,
		dir:    filepath.Join(n.dir, spec.Name),
		cgroup: filepath.Join(filepath.Base(n.dir), spec.Name),
	}
	node.stop = sync.OnceValue(node.end)
	n.nodes = append(n.nodes, node)
	return node, nil
}

func (n *Node) start(ctx context.Context) error {
	began := time.Now()
	if err := n.writeConfig(n.all.plane.keys, n.all.paths, n.all.runc); err != nil {
		return err
	}
	if err := makeCgroups(n.all.cgroups, n.cgroup); err != nil {
		return err
	}
	path := strings.Join([]string{filepath.Dir(n.all.paths[containerd]), filepath.Dir(n.all.paths[kubelet]), os.Getenv("PATH")}, ":")
	plane := n.all.plane
	started, err := plane.spawn(program{name: "node-" + n.Name, path: n.all.program(), attr: ownNamespaces()}, []string{
		"-name=" + n.Name, "-address=" + n.IP + "/24", "-dir=" + n.dir,
		"-cgroup=" + n.cgroup, "-hierarchies=" + strings.Join(n.all.cgroups, ":"),
		"-cpus=" + strconv.Itoa(n.spec.CPUs), "-memory=" + strconv.FormatInt(n.spec.Memory>>10, 10), "--",
		"--config=" + filepath.Join(n.dir, "kubelet.yaml"), "--kubeconfig=" + filepath.Join(n.dir, "kubeconfig"),
		"--cert-dir=/var/lib/kubelet/pki", "--node-ip=" + n.IP, "--hostname-override=" + n.Name,
		"--node-labels=" + labels.Set(n.spec.Labels).String(),
	}, []string{"PATH=" + path})
	if err != nil {
		return err
	}
	n.child = started
	if err := n.all.network.attach(ctx, n.index, started.cmd.Process.Pid); err != nil {
		return fmt.Errorf("%w\n%s", err, started.tail())
	}
	if err := started.waitReady(ctx, n.ready); err != nil {
		return err
	}
	plane.logf("node %s is ready after %.1fs", n.Name, time.Since(began).Seconds())
	return nil
}

// ready reports why pods cannot be scheduled to the node yet.
func (n *Node) ready(ctx context.Context) error {
	var node corev1.Node
	if err := n.all.plane.client.Get(ctx, client.ObjectKey{Name: n.Name}, &node); err != nil {
		return err
	}
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			return fmt.Errorf("it has the taint %s", taint.Key)
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return errors.New("its condition Ready is not True")
}

// SetExtendedResource gives the node an amount of a resource that no kubelet knows
// by itself, such as nvidia.com/gpu, as a device plugin does. It returns when the
// kubelet has made it allocatable, up to 10 seconds later.
func (n *Node) SetExtendedResource(ctx context.Context, name corev1.ResourceName, amount int64) error {
	quantity := *resource.NewQuantity(amount, resource.DecimalSI)
	var node corev1.Node
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startLimit, true, func(ctx context.Context) (bool, error) {
		if err := n.all.plane.client.Get(ctx, client.ObjectKey{Name: n.Name}, &node); err != nil {
			return false, err
		}
		if got, ok := node.Status.Allocatable[name]; ok && got.Cmp(quantity) == 0 {
			return true, nil
		}
		if got, ok := node.Status.Capacity[name]; ok && got.Cmp(quantity) == 0 {
			return false, nil
		}
		before := client.StrategicMergeFrom(node.DeepCopy())
		node.Status.Capacity[name] = quantity
		return false, n.all.plane.client.Status().Patch(ctx, &node, before)
	})
	if err != nil {
		return fmt.Errorf("give node %s the resource %s: %w", n.Name, name, err)
	}
	return nil
}

// Stop ends the node at once, with the pods on it, as a machine that loses power.
// The Node object stays. Calling it again does nothing and returns the same error.
func (n *Node) Stop() error { return n.stop() }

func (n *Node) end() error {
	if n.child != nil {
		if err := n.child.kill(); err != nil {
			return err
		}
	}
	n.all.mu.Lock()
	n.all.nodes = slices.DeleteFunc(n.all.nodes, func(other *Node) bool { return other == n })
	n.all.mu.Unlock()
	return errors.Join(removeCgroups(n.all.cgroups, n.cgroup), removeFolder(n.dir))
}
