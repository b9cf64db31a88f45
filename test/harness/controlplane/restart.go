package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// RestartAPIServer stops kube-apiserver (SIGTERM), keeps it away for a time, and starts it again at the same address,
// with the same arguments and a new log. It returns when it is ready; whoever calls it meanwhile is refused.
func (c *ControlPlane) RestartAPIServer(ctx context.Context, away time.Duration) error {
	c.mu.Lock()
	at := slices.IndexFunc(c.children, func(p *child) bool { return p.name == apiServer })
	before := c.children[at]
	c.mu.Unlock()
	if err := before.stop(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("restart %s: %w", apiServer, ctx.Err())
	case <-time.After(away):
	}
	_, err := c.launchProcess(ctx, program{
		name: apiServer, path: before.cmd.Path,
		command: func([]int) (args, env []string, err error) { return before.cmd.Args[1:], nil, nil },
		ready:   func(ctx context.Context, _ []int) error { return c.probe(ctx, c.Config.Host+"/readyz") },
	})
	if err != nil {
		return err
	}
	// What stands on it still ends before it: see end.
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.children) - 1
	c.children[at], c.children = c.children[last], c.children[:last]
	return nil
}
