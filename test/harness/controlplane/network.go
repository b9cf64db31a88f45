package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const hubAddress = "10.99.0.1"

// network joins nodes to each other and to what this process serves them, and to
// nothing else: it is a network namespace that no device leads out of. It has no
// name; the kernel removes it with the last thread and socket in it.
type network struct {
	thread *spawner
	ctx    context.Context // ends with the network
	cancel context.CancelFunc
	closed sync.WaitGroup
}

func newNetwork(ctx context.Context) (*network, error) {
	n := &network{thread: newSpawner()}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	err := n.thread.do(enterNewNetwork)
	if err == nil {
		err = n.ip(ctx, "link set lo up", "link add hub type bridge", "address add "+hubAddress+"/24 dev hub", "link set hub up")
	}
	if err != nil {
		n.close()
		return nil, fmt.Errorf("make a network for the nodes: %w", err)
	}
	return n, nil
}

// ip runs ip inside of the network, with one command per line.
func (n *network) ip(ctx context.Context, lines ...string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := n.thread.start(cmd); err != nil {
		return fmt.Errorf("run ip: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("ip -batch: %w: %s", err, out.String())
	}
	return nil
}

// attach gives the network namespace of a process its eth0.
func (n *network) attach(ctx context.Context, index, pid int) error {
	err := n.ip(ctx,
		fmt.Sprintf("link add port%d type veth peer name eth0 netns %d", index, pid),
		fmt.Sprintf("link set port%d master hub up", index))
	if err != nil {
		return fmt.Errorf("attach a node to the network: %w", err)
	}
	return nil
}

// listen opens a port of hubAddress. A socket stays in the namespace of the thread
// that made it, whoever uses it.
func (n *network) listen(port int) (net.Listener, error) {
	var listener net.Listener
	err := n.thread.do(func() (err error) {
		listener, err = net.Listen("tcp", fmt.Sprintf("%s:%d", hubAddress, port))
		return err
	})
	return listener, err
}

// relay passes connections to a port of the network on to target, an address of
// the machine's own network, until the network is closed.
func (n *network) relay(port int, target string) error {
	listener, err := n.listen(port)
	if err != nil {
		return fmt.Errorf("relay to %s: %w", target, err)
	}
	context.AfterFunc(n.ctx, func() { _ = listener.Close() }) // nothing was sent over it
	n.closed.Go(func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(pollInterval) // out of files, say
				continue
			}
			n.closed.Go(func() { n.join(conn, target) })
		}
	})
	return nil
}

// join ends when either side does. No one is told of errors: each side sees that
// its connection has ended.
func (n *network) join(near net.Conn, target string) {
	defer near.Close() //nolint:errcheck // see above
	far, err := (&net.Dialer{}).DialContext(n.ctx, "tcp", target)
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // see above
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		n.closed.Go(func() {
			defer cancel()
			_, _ = io.Copy(pair[0], pair[1])
		})
	}
	<-ctx.Done()
}

func (n *network) close() {
	n.cancel()
	n.closed.Wait()
	n.thread.close()
}
