package chart

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Helms are the major versions of Helm that the chart is for.
var Helms = []string{"v3", "v4"}

// Helm builds a major version of Helm, by the module test/harness/helm, and returns the path of the executable.
func Helm(ctx context.Context, root, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "test", "harness", "helm"), "tool", "-n", "helm.sh/helm/"+version+"/cmd/helm")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build Helm %s: %w\n%s", version, err, &complaints)
	}
	return strings.TrimSpace(string(out)), nil
}
