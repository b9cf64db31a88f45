package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	startLimit   = 2 * time.Minute // for one process to become ready on a busy machine
	stopLimit    = 10 * time.Second
	pollInterval = 100 * time.Millisecond
	tailLines    = 20
	portAttempts = 3
)

var errPortTaken = errors.New("a port it was given is in use")

// program says how to run one component on ports that are free just now.
type program struct {
	name, path string
	ports      int
	// attr is what the process is started with; nil: it dies with this one.
	attr *syscall.SysProcAttr
	// command gives arguments and extra environment; it runs once per attempt.
	command func(ports []int) (args, env []string, err error)
	ready   func(ctx context.Context, ports []int) error
}

// spawner starts processes from one OS thread that lives as long as the control
// plane. A child asks the kernel for SIGKILL at its parent's death, and to the
// kernel the parent is the thread that forked, not the process: started from any
// other goroutine, children would die as soon as Go retires that thread.
type spawner struct{ jobs chan func() }

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go s.serve()
	return s
}

func (s *spawner) serve() {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	if onMainThread() {
		// That one cannot end. While it is held here, another goroutine runs on another thread.
		moved := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(moved)
			s.work()
		}()
		<-moved
		runtime.UnlockOSThread()
		return
	}
	s.work()
}

func (s *spawner) work() {
	for job := range s.jobs {
		job()
	}
}

// do runs f on the thread.
func (s *spawner) do(f func() error) error {
	done := make(chan error, 1)
	s.jobs <- func() { done <- f() }
	return <-done
}

func (s *spawner) start(cmd *exec.Cmd) error { return s.do(cmd.Start) }

func (s *spawner) close() { close(s.jobs) }

// child is one running process.
type child struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed once the process has ended
}

// launch starts p and waits until it is ready. Another process may take a port
// between its choice and its use, so that alone is tried again.
func (c *ControlPlane) launch(ctx context.Context, p program) error {
	_, err := c.launchProcess(ctx, p)
	return err
}

func (c *ControlPlane) launchProcess(ctx context.Context, p program) (*child, error) {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		started, err := c.launchOnce(ctx, p)
		if err == nil {
			c.logf("%s is ready after %.1fs", p.name, time.Since(began).Seconds())
			return started, nil
		}
		if attempt == portAttempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("start %s: %w", p.name, err)
		}
	}
}

func (c *ControlPlane) launchOnce(ctx context.Context, p program) (*child, error) {
	ports, err := freePorts(p.ports)
	if err != nil {
		return nil, err
	}
	args, env, err := p.command(ports)
	if err != nil {
		return nil, err
	}
	started, err := c.spawn(p, args, env)
	if err != nil {
		return nil, err
	}
	return started, started.waitReady(ctx, func(ctx context.Context) error { return p.ready(ctx, ports) })
}

func (c *ControlPlane) spawn(p program, args, env []string) (*child, error) {
	path := filepath.Join(c.Dir, p.name+".log")
	log, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make its log: %w", err)
	}
	cmd := exec.Command(p.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	// Nothing of the user's own configuration may reach a test cluster.
	cmd.Env = append([]string{"HOME=" + c.Dir, "TMPDIR=" + c.Dir, "PATH=" + os.Getenv("PATH")}, env...)
	cmd.SysProcAttr = cmp.Or(p.attr, dieWithParent())
	err = c.spawner.start(cmd)
	if closeErr := log.Close(); err == nil && closeErr != nil {
		err = errors.Join(closeErr, cmd.Process.Kill())
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", p.path, err)
	}
	started := &child{name: p.name, cmd: cmd, log: path, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // cmd.ProcessState keeps how it ended
		close(started.done)
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.children = append(c.children, started)
	return started, nil
}

func (p *child) waitReady(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	notReady := errors.New("not asked yet")
	for {
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w: %w\n%s", ctx.Err(), notReady, p.tail())
		case <-tick.C:
		}
		if notReady = ready(ctx); notReady == nil {
			return p.stillRuns()
		}
	}
}

// stillRuns tells p from another process that took its port and answers there.
func (p *child) stillRuns() error {
	select {
	case <-p.done:
		return p.ended()
	default:
		return nil
	}
}

func (p *child) ended() error {
	tail := p.tail()
	if strings.Contains(tail, "address already in use") {
		return fmt.Errorf("%w\n%s", errPortTaken, tail)
	}
	return fmt.Errorf("it ended before it was ready (%v); its log ends:\n%s", p.cmd.ProcessState, tail)
}

// tail gives the last lines of the log, for an error message.
func (p *child) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(data))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// stop ends the process by its id, gently first.
func (p *child) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
	}
	return p.kill()
}

// kill ends the process at once.
func (p *child) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// FreePort returns a TCP port of 127.0.0.1 that no one listens on just now.
func FreePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// freePorts holds all of its listeners until the last is open, so that the ports differ.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
		}
		defer listener.Close() //nolint:errcheck // nothing was sent over it
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("find a free port on 127.0.0.1: got %s", listener.Addr())
		}
		ports = append(ports, address.Port)
	}
	return ports, nil
}
