package controlplane

import (
	"context"
	"fmt"
	"slices"
)

// Program is a program of the caller's own that runs beside the cluster and ends with it.
type Program struct {
	// Name is what its log file is called.
	Name string
	// Path of the executable.
	Path string
	// Ports is how many free ports of 127.0.0.1 it needs.
	Ports int
	// Command gives arguments and additional environment for these ports; it is called again when a port was taken.
	Command func(ports []int) (args, env []string)
	// Ready is asked again and again until it returns nil.
	Ready func(ctx context.Context, ports []int) error
}

// Process is a running Program.
type Process struct {
	child *child
	// Ports that it was given.
	Ports []int
	// Log is the path of what it wrote, until the control plane stops.
	Log string
}

// Run starts a Program and returns when it is ready. The error ends with the last lines of its log.
func (c *ControlPlane) Run(ctx context.Context, p Program) (*Process, error) {
	process := &Process{}
	started, err := c.launchProcess(ctx, program{
		name: p.Name, path: p.Path, ports: p.Ports,
		command: func(ports []int) (args, env []string, err error) {
			process.Ports = ports
			args, env = p.Command(ports)
			return args, env, nil
		},
		ready: p.Ready,
	})
	if err != nil {
		return nil, err
	}
	process.child, process.Log = started, started.log
	return process, nil
}

// Kill ends the process at once.
func (p *Process) Kill() error { return p.child.kill() }

// Stop asks the process to end (SIGTERM) and waits until it has; the error says
// how it ended when that is not with exit code 0.
func (p *Process) Stop() error {
	if err := p.child.stop(); err != nil {
		return err
	}
	if state := p.child.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s ended with %s; its log ends:\n%s", p.child.name, state, p.child.tail())
	}
	return nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.child.cmd.Process.Pid }

// PID is the process id of a component or Program by its name, that of its log file; 0 when there is none.
func (c *ControlPlane) PID(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.IndexFunc(c.children, func(p *child) bool { return p.name == name }); at >= 0 {
		return c.children[at].cmd.Process.Pid
	}
	return 0
}
