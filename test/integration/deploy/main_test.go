// Package deploy_test installs warmpool with make and the user's own kubectl, on a control plane whose nodes run pods, and
// takes it out again.
package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

const (
	limit = time.Minute // for anything that is waited for
	step  = 100 * time.Millisecond
	image = "registry.example:5000/warmpool:v1.2.3@sha256:0123456789012345678901234567890123456789012345678901234567890123"
)

var (
	cp   *controlplane.ControlPlane
	root string
	// kubectl and warmpool are the paths of the two programs.
	kubectl, binary string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	needs.Main(needs.ControlPlane, controlplane.Ready(context.Background(), controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true}))
	if err := start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cp.Stop() //nolint:errcheck // the tests have spoken
	return m.Run()
}

func start(ctx context.Context) error {
	var err error
	if root, err = install.Root(); err != nil {
		return err
	}
	if kubectl, err = controlplane.PrepareKubectl(ctx); err != nil {
		return err
	}
	options := controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true, Log: os.Stderr}
	if cp, err = controlplane.Start(ctx, options); err != nil {
		return err
	}
	crds, err := install.CRDs(root)
	if err == nil {
		err = cp.Apply(ctx, crds...)
	}
	if err == nil {
		binary, err = install.Build(ctx, root, cp.Dir)
	}
	if err != nil {
		return errors.Join(err, cp.Stop())
	}
	return errors.Join(node(ctx, "addons", nil), node(ctx, "warm", map[string]string{"karpenter.sh/nodepool": "spaces-cpu"}))
}

// node makes a node that runs pods, in name at least.
func node(ctx context.Context, name string, labels map[string]string) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("48"), corev1.ResourceMemory: resource.MustParse("180Gi"), corev1.ResourcePods: resource.MustParse("200"),
	}
	return cp.CreateNode(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	})
}

// makeTarget runs make as a user would, and returns what it printed. The error has it too.
func makeTarget(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "make", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECTL="+kubectl+" --cache-dir="+filepath.Join(cp.Dir, "kubectl"), "KUBECONFIG="+cp.Kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("make %s: %w\n%s", strings.Join(args, " "), err, &out)
	}
	return out.String(), nil
}

// cluster runs kubectl and returns what it printed.
func cluster(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := cp.Kubectl(t.Context(), "", args...)
	require.NoError(t, err)
	return out
}

func apply(t *testing.T, manifest string) {
	t.Helper()
	_, _, err := cp.Kubectl(t.Context(), manifest, "apply", "-f", "-")
	require.NoError(t, err)
}
