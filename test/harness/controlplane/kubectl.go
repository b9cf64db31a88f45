package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// KubectlError is what kubectl complained about when it failed.
type KubectlError struct {
	Args []string
	// Code is the exit code; 1 of kubectl diff says that there are differences.
	Code int
	// Stderr is what it wrote there.
	Stderr string
}

// Error tells the command, the exit code and what kubectl wrote to standard error.
func (e *KubectlError) Error() string {
	return fmt.Sprintf("kubectl %s: exit code %d: %s", strings.Join(e.Args, " "), e.Code, strings.TrimSpace(e.Stderr))
}

// PrepareKubectl gets kubectl, which is built the first time, and returns its path.
func PrepareKubectl(ctx context.Context) (string, error) {
	s, err := findStore(ctx, clusterComponents, nil)
	if err != nil {
		return "", err
	}
	return s.get(ctx, kubectlArtifact)
}

// Kubectl runs kubectl as the admin, with input as its standard input, and returns both of its outputs; warnings of the
// API server are among standard error. A command that fails gives a *KubectlError.
func (c *ControlPlane) Kubectl(ctx context.Context, input string, args ...string) (stdout, stderr string, err error) {
	path, err := PrepareKubectl(ctx)
	if err != nil {
		return "", "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+filepath.Join(c.Dir, "kubectl"))
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = &KubectlError{Args: args, Code: exit.ExitCode(), Stderr: errs.String()}
	}
	return out.String(), errs.String(), err
}
