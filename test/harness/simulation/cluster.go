package simulation

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

// Names of the cluster. Pools of nodes are NodePools of Karpenter: PoolPrefix and a kind, "cpu" or "gpu". There is
// another, "general", for what is no Workspace.
const (
	Placeholders = "overprovisioning" // namespace of placeholders
	Team         = "team"             // namespace of Workspaces
	PoolPrefix   = "spaces-"
	PoolLabel    = "karpenter.sh/nodepool"

	templates = "jupyter-k8s-shared" // namespace of WorkspaceTemplates
)

//go:embed cluster.yaml
var clusterYAML string

// Options say what is simulated.
type Options struct {
	// Warmpool installs warmpool and its placeholders from the shipped manifests.
	Warmpool bool
	// Objects are applied at the end, such as placeholders made by hand. Autoscalers among them are played.
	Objects []*unstructured.Unstructured
	// Delays are what the played parts take; the zero value stands for DefaultDelays.
	Delays Delays
	// Log receives one line per step; nil discards them.
	Log io.Writer
}

// Delays are what the played parts take.
type Delays struct {
	// Boot is from Karpenter's order to the node's registration, in whole seconds.
	Boot time.Duration
	// Start is from the moment when a pod's images are there to its running.
	Start time.Duration
	// PullGB is a pull's time for each GB of the image.
	PullGB time.Duration
	// Scale is how often autoscalers count nodes.
	Scale time.Duration
}

// DefaultDelays are a twentieth of: 3 minutes until a machine has booted, 35 MB/s for images, CPA's 10 s. Start is not
// compressed: it is what a real kubelet takes.
var DefaultDelays = Delays{Boot: 9 * time.Second, Start: 400 * time.Millisecond, PullGB: 1430 * time.Millisecond, Scale: 500 * time.Millisecond}

// Cluster is a running simulation.
type Cluster struct {
	*controlplane.ControlPlane
	// Admin may do everything.
	Admin client.WithWatch
	// Warmpool is the process, nil where it is not installed.
	Warmpool *install.Warmpool
	// Shipped are the manifests that Warmpool was installed from; for install.Start of another replica.
	Shipped []*unstructured.Unstructured
	// Book holds what has happened.
	Book *Book

	delays  Delays
	kubelet *kubelet
	cache   cache.Cache
	log     io.Writer
	end     context.CancelFunc
	tasks   sync.WaitGroup
}

var components = controlplane.Options{ControllerManager: true, Scheduler: true, Karpenter: true, NodesOnly: true}

// Ready says which programs Start would have to build first, or nil.
func Ready(ctx context.Context) error { return controlplane.Ready(ctx, components) }

// Start brings the cluster up, which takes about 20 seconds. It has the WorkspaceTemplates cpu and gpu, with CPUImage and
// GPUImage. It does not wait for placeholders: see Warm. ctx bounds the start alone.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Delays == (Delays{}) {
		opts.Delays = DefaultDelays
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	with := components
	with.Log = opts.Log
	plane, err := controlplane.Start(ctx, with)
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	c := &Cluster{ControlPlane: plane, Book: newBook(opts.Delays.Boot), delays: opts.Delays, log: opts.Log, end: end}
	if err := c.start(ctx, running, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("start the simulation: %w", err), c.Stop())
	}
	return c, nil
}

// Stop ends everything.
func (c *Cluster) Stop() error {
	c.end()
	c.tasks.Wait()
	return c.ControlPlane.Stop()
}

func (c *Cluster) start(ctx, running context.Context, opts Options) error {
	var err error
	if c.Admin, err = client.NewWithWatch(c.Config, client.Options{}); err != nil {
		return err
	}
	root, err := install.Root()
	if err != nil {
		return err
	}
	objects, err := install.CRDs(root)
	if err != nil {
		return err
	}
	own, err := controlplane.Decode(strings.NewReader(strings.Replace(clusterYAML, "BOOT", opts.Delays.Boot.String(), 1)))
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, append(objects, own...)...); err != nil {
		return err
	}
	for kind, image := range map[string]string{"cpu": CPUImage, "gpu": GPUImage} {
		if err := c.SetTemplate(ctx, kind, image); err != nil {
			return err
		}
	}
	if err := c.play(ctx, running); err != nil {
		return err
	}
	if opts.Warmpool {
		if err := c.install(ctx, root); err != nil {
			return err
		}
	}
	if err := c.Apply(ctx, withoutAutoscalers(opts.Objects)...); err != nil {
		return err
	}
	if err := c.autoscale(ctx); err != nil {
		return err
	}
	c.tasks.Go(func() { c.keepScaling(running) })
	return nil
}

// play starts what follows pods and nodes.
func (c *Cluster) play(ctx, running context.Context) error {
	var err error
	if c.cache, err = cache.New(c.Config, cache.Options{Scheme: scheme.Scheme}); err != nil {
		return err
	}
	c.kubelet = newKubelet(running, c.Admin, c.delays, c.log)
	c.tasks.Go(func() {
		if err := c.cache.Start(running); err != nil {
			c.logf("the caches of the simulation: %v", err)
		}
		c.kubelet.pods.Wait()
	})
	// Nodes first: a pod that is seen on its node is to find it.
	if err := c.follow(ctx, &corev1.Node{}, c.node); err != nil {
		return err
	}
	return c.follow(ctx, &corev1.Pod{}, c.pod)
}

// install applies what ships and starts warmpool.
func (c *Cluster) install(ctx context.Context, root string) error {
	var err error
	if c.Shipped, err = install.Render(filepath.Join(root, "manifests", "overlays", "embedded")); err != nil {
		return err
	}
	port, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	local, err := install.Localize(c.Shipped, port)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, withoutAutoscalers(local)...); err != nil {
		return err
	}
	binary, err := install.Build(ctx, root, c.Dir)
	if err != nil {
		return err
	}
	c.Warmpool, err = install.Start(ctx, c.ControlPlane, binary, c.Shipped, port)
	return err
}

// SetTemplate sets the image of the WorkspaceTemplate of a kind, "cpu" or "gpu".
func (c *Cluster) SetTemplate(ctx context.Context, kind, image string) error {
	template := fmt.Appendf(nil, "{apiVersion: workspace.jupyter.org/v1alpha1, kind: WorkspaceTemplate, metadata: {namespace: %s, name: %s}, spec: {defaultImage: %q}}",
		templates, kind, image)
	objects, err := controlplane.Decode(bytes.NewReader(template))
	if err != nil {
		return err
	}
	return c.Apply(ctx, objects...)
}

func (c *Cluster) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.log, format+"\n", args...) // a progress line that cannot be written is no reason to stop
}
