package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"warmpool.sh/test/harness/controlplane/registry"
)

// nodesPrefix begins the names of a run's folder and cgroups; the id of its process
// and random digits follow.
const nodesPrefix = "controlplane-nodes-"

// Nodes are real nodes of a control plane: each a kubelet with containerd and runc,
// in namespaces of its own, that pulls images from Registry and from nowhere else.
type Nodes struct {
	// Registry serves every reference, whatever registry it names.
	Registry *registry.Registry
	// Program is a static program that does nothing until it is asked to end, for
	// the images that a test makes.
	Program []byte

	plane   *ControlPlane
	dir     string
	paths   map[string]string
	runc    string
	cgroups []string // the hierarchies
	network *network
	server  *http.Server
	stop    func() error

	mu    sync.Mutex
	nodes []*Node // those that run
	added int
}

// StartNodes starts nodes and returns once each is Ready, which takes about 10
// seconds. It needs what RealNodes asks for, and a control plane with a
// controller-manager. The nodes end with the control plane, with this process
// however that comes, or earlier by Stop. What a killed run left is removed first.
func (c *ControlPlane) StartNodes(ctx context.Context, specs ...NodeSpec) (*Nodes, error) {
	if err := RealNodes(); err != nil {
		return nil, err
	}
	n := &Nodes{Registry: registry.New(), plane: c}
	n.stop = sync.OnceValue(n.end)
	if err := n.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare for nodes: %w", err), n.Stop())
	}
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, spec := range specs {
		group.Go(func() error {
			_, err := n.Start(groupCtx, spec)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// Node returns the running node of this name, or nil.
func (n *Nodes) Node(name string) *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, node := range n.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// Stop ends the nodes with all that runs on them, and removes what they had.
// Calling it again does nothing and returns the same error.
func (n *Nodes) Stop() error { return n.stop() }

func (n *Nodes) prepare(ctx context.Context) (err error) {
	if n.runc, err = exec.LookPath(runc); err != nil {
		return err
	}
	if n.paths, err = locateNodes(ctx, n.plane.log); err != nil {
		return err
	}
	if n.cgroups, err = cgroupHierarchies(); err != nil {
		return err
	}
	if err := removeLeftovers(n.cgroups); err != nil {
		return err
	}
	if n.dir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-", nodesPrefix, os.Getpid())); err != nil {
		return fmt.Errorf("make the nodes' folder: %w", err)
	}
	if err := errors.Join(buildOwn(ctx, "node", n.program()), buildOwn(ctx, "pause", filepath.Join(n.dir, "pause"))); err != nil {
		return err
	}
	if n.Program, err = os.ReadFile(filepath.Join(n.dir, "pause")); err != nil {
		return fmt.Errorf("read back a program: %w", err)
	}
	pause, err := registry.NewImage(n.Program, 0, "")
	if err != nil {
		return err
	}
	n.Registry.Push(pauseImage, pause)
	return n.connect(ctx)
}

// connect makes the network, in which the API server and the registry are reached.
func (n *Nodes) connect(ctx context.Context) (err error) {
	if n.network, err = newNetwork(ctx); err != nil {
		return err
	}
	if err := n.network.relay(apiPort, strings.TrimPrefix(n.plane.Config.Host, "https://")); err != nil {
		return err
	}
	listener, err := n.network.listen(registryPort)
	if err != nil {
		return fmt.Errorf("serve the registry: %w", err)
	}
	n.server = &http.Server{Handler: n.Registry, ReadHeaderTimeout: stopLimit}
	go n.server.Serve(listener) //nolint:errcheck // it returns when it is closed
	return nil
}

func (n *Nodes) program() string { return filepath.Join(n.dir, "node") }

func (n *Nodes) end() error {
	n.mu.Lock()
	nodes := slices.Clone(n.nodes)
	n.mu.Unlock()
	var group errgroup.Group
	for _, node := range nodes {
		group.Go(node.Stop)
	}
	errs := []error{group.Wait()}
	if n.server != nil {
		errs = append(errs, n.server.Close())
	}
	if n.network != nil {
		n.network.close()
	}
	if n.dir != "" {
		errs = append(errs, removeCgroups(n.cgroups, filepath.Base(n.dir)), os.RemoveAll(n.dir))
	}
	return errors.Join(errs...)
}

// removeLeftovers removes the folders and cgroups of runs whose process was killed.
// Their other traces went with their processes.
func removeLeftovers(hierarchies []string) error {
	var errs []error
	for _, parent := range append([]string{os.TempDir()}, hierarchies...) {
		paths, err := filepath.Glob(filepath.Join(parent, nodesPrefix+"*"))
		if err != nil {
			return fmt.Errorf("look for what a killed run left: %w", err)
		}
		for _, path := range paths {
			number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), nodesPrefix), "-")
			pid, err := strconv.Atoi(number)
			if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				continue
			}
			if parent == os.TempDir() {
				errs = append(errs, removeFolder(path))
			} else {
				errs = append(errs, removeCgroups([]string{parent}, filepath.Base(path)))
			}
		}
	}
	return errors.Join(errs...)
}

// removeFolder tries again while a mount namespace that is about to end, with the
// processes that were killed, still holds mounts in path.
func removeFolder(path string) error {
	err := os.RemoveAll(path)
	for deadline := time.Now().Add(stopLimit); err != nil && !errors.Is(err, fs.ErrNotExist) && time.Now().Before(deadline); {
		time.Sleep(pollInterval)
		err = os.RemoveAll(path)
	}
	if err != nil {
		return fmt.Errorf("remove the folder of nodes: %w", err)
	}
	return nil
}
