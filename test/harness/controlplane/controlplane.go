// Package controlplane runs a real Kubernetes control plane as child processes,
// without containers and without root: etcd and kube-apiserver always, and
// kube-controller-manager, kube-scheduler, KWOK and Karpenter when asked for.
// Tests and the local run use it. It runs on Unix only.
//
// Where RealNodes allows it, StartNodes adds real nodes: kubelet, containerd and runc,
// each node in namespaces of its own, and a registry that they pull from.
//
// The programs come from $KUBEBUILDER_ASSETS, else from the user's cache folder,
// else from setup-envtest, which test/harness/tools/go.mod pins, else they are built from the
// sources that components/go.mod and nodecomponents/go.mod pin, which takes about 20
// minutes the first time, and about 8 more for nodes. Ready says whether they are there.
package controlplane

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// instanceTypes are the machines that Karpenter may choose from.
//
//go:embed instance_types.json
var instanceTypes []byte

// Options says what to start beside etcd and kube-apiserver.
type Options struct {
	// ControllerManager starts kube-controller-manager. Without it no one makes
	// default ServiceAccounts or removes the taint of a node that became ready,
	// so the two admission plugins that count on these are off.
	ControllerManager bool
	// Scheduler starts kube-scheduler.
	Scheduler bool
	// KWOK plays the kubelet of every node annotated kwok.x-k8s.io/node=fake.
	KWOK bool
	// NodesOnly has KWOK leave the pods of its nodes alone: the caller plays their kubelets.
	NodesOnly bool
	// Karpenter starts Karpenter with its kwok cloud provider, and KWOK with it,
	// because its nodes are fake ones. Unlike everything else here its metrics
	// and probe ports listen on all addresses; it has no setting for that.
	Karpenter bool
	// WebhookClientName is the common name of a client certificate that
	// kube-apiserver shows to every webhook; it shows none when this is empty. The
	// file ca.crt in Dir is the CA that signed it.
	WebhookClientName string
	// AuditPolicy is the audit policy (YAML) of kube-apiserver, which then writes the
	// file audit.log in Dir, an event (JSON) per line; it audits nothing when this is empty.
	AuditPolicy string
	// Measured has kube-apiserver collect garbage as it does elsewhere; for tests it does so less often, which spares them a
	// tenth of its processor time.
	Measured bool
	// Log receives one line per step; nil discards them.
	Log io.Writer
}

func (o Options) complete() Options {
	o.KWOK = o.KWOK || o.Karpenter
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// ControlPlane is a running cluster. All of it listens on 127.0.0.1.
type ControlPlane struct {
	// Config connects as a member of system:masters, without a client-side rate limit.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig file for the same user.
	Kubeconfig string
	// Dir holds state and one <name>.log per process until Stop.
	Dir string

	log     io.Writer
	client  client.Client
	keys    keys
	etcdURL string
	spawner *spawner

	mu       sync.Mutex
	children []*child
	nodes    []*Nodes
	stop     func() error
}

// Start brings the cluster up and returns once every part of it is ready, which
// takes 6 to 12 seconds. ctx bounds the start alone; a cluster that has started
// runs until Stop or the end of this process, however that comes.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	opts = opts.complete()
	paths, err := locate(ctx, opts)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return nil, fmt.Errorf("make the control plane's folder: %w", err)
	}
	c := &ControlPlane{Dir: dir, log: opts.Log, spawner: newSpawner()}
	c.stop = sync.OnceValue(c.end)
	if err := c.start(ctx, opts, paths); err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), c.Stop())
	}
	return c, nil
}

// Stop ends all processes and removes Dir. Calling it again does nothing and
// returns the same error.
func (c *ControlPlane) Stop() error { return c.stop() }

func (c *ControlPlane) start(ctx context.Context, opts Options, paths map[string]string) error {
	keys, err := writeKeys(c.Dir)
	if err != nil {
		return err
	}
	c.keys = keys
	if err := c.launch(ctx, c.etcd(paths)); err != nil {
		return err
	}
	if err := c.launch(ctx, c.apiServer(opts, paths)); err != nil {
		return err
	}
	if c.client, err = client.New(c.Config, client.Options{}); err != nil {
		return fmt.Errorf("make the admin client: %w", err)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	if opts.ControllerManager {
		group.Go(func() error { return c.launch(groupCtx, c.controllerManager(paths)) })
	}
	if opts.Scheduler {
		group.Go(func() error { return c.launch(groupCtx, c.scheduler(paths)) })
	}
	if opts.KWOK {
		group.Go(func() error { return c.launch(groupCtx, c.kwok(opts, paths)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := c.waitForDefaults(ctx, opts.ControllerManager); err != nil {
		return err
	}
	if opts.Karpenter {
		return c.startKarpenter(ctx, paths)
	}
	return nil
}

// useAPIServer makes the admin's kubeconfig file and Config for the address url.
func (c *ControlPlane) useAPIServer(url string) error {
	path := filepath.Join(c.Dir, "admin.kubeconfig")
	if err := writeKubeconfig(path, url, c.keys.ca, c.keys.token); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read back %s: %w", path, err)
	}
	config.QPS = -1
	c.Kubeconfig, c.Config = path, config
	return nil
}

// end stops the children in the reverse of their order, so that none loses what
// it stands on first and waits for it.
func (c *ControlPlane) end() error {
	var errs []error
	for _, nodes := range c.nodes {
		errs = append(errs, nodes.Stop())
	}
	for _, child := range slices.Backward(c.children) {
		errs = append(errs, child.stop())
	}
	c.spawner.close()
	errs = append(errs, os.RemoveAll(c.Dir))
	return errors.Join(errs...)
}

func (c *ControlPlane) logf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A progress line that cannot be written is no reason to stop.
	_, _ = fmt.Fprintf(cmp.Or(c.log, io.Discard), format+"\n", args...)
}
