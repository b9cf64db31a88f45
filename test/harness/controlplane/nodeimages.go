package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Forget makes the node pull an image of this reference anew when it is needed next.
// It waits until no container there uses it, for its layers stay until then.
func (n *Node) Forget(ctx context.Context, reference string) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startLimit, true, func(ctx context.Context) (bool, error) {
		containers, err := n.containerd(ctx, "containers", "list")
		return !strings.Contains(containers, " "+reference+" "), err
	})
	if err != nil {
		return fmt.Errorf("wait until no container on node %s uses %s: %w", n.Name, reference, err)
	}
	records, err := n.imageRecords(ctx, reference)
	if err != nil {
		return err
	}
	for _, record := range records {
		if _, err := n.containerd(ctx, "images", "remove", "--sync", record); err != nil {
			return err
		}
	}
	return nil
}

// imageRecords are all names of the image: its tag, its digest and its configuration's.
func (n *Node) imageRecords(ctx context.Context, reference string) ([]string, error) {
	list, err := n.containerd(ctx, "images", "list")
	if err != nil {
		return nil, err
	}
	digests := map[string]string{} // by name
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 2 { // REF TYPE DIGEST …
			digests[fields[0]] = fields[2]
		}
	}
	var records []string
	for name, digest := range digests {
		if digest == digests[reference] {
			records = append(records, name)
		}
	}
	return records, nil
}

// containerd asks the node's containerd; its socket is in the node's own /run.
func (n *Node) containerd(ctx context.Context, args ...string) (string, error) {
	socket := fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", n.child.cmd.Process.Pid)
	cmd := exec.CommandContext(ctx, n.all.paths[containerdCtl], append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("ask containerd on node %s for %s: %w: %s", n.Name, strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}
