// Package warmth_test proves on real controllers and a real scheduler that placeholder pods are labelled by how far their
// pre-pull is, and what their PodDisruptionBudgets hold up and what not. The tests are the kubelet of all nodes; warmpool
// and the placeholders are those of the manifests that ship.
package warmth_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

const (
	limit = 60 * time.Second // for anything that is waited for

	placeholders = "overprovisioning"
	templates    = "jupyter-k8s-shared"
	// warmpoolUser is who warmpool is to the API server.
	warmpoolUser = "system:serviceaccount:warmpool-system:warmpool"
	first        = "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu" // as shipped
	second       = "public.ecr.aws/sagemaker/sagemaker-distribution:3.3.0-cpu"
)

// auditPolicy notes what warmpool writes to pods, and with what.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  users: [` + warmpoolUser + `]
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: "", resources: [pods, pods/*]}]
- level: None
`

// cluster is a control plane with a warmpool.
type cluster struct {
	*controlplane.ControlPlane
	admin    client.WithWatch
	shipped  []*unstructured.Unstructured
	warmpool *install.Warmpool
}

var long = flag.Bool("long", false, "wait until Karpenter's nodes expire too")

// shared is the cluster of all tests but the one with Karpenter.
var shared *cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(klog.Background())
	ctx := context.Background()
	needs.Main(needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{ControllerManager: true, Scheduler: true}))
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := controlplane.PrepareKubectl(ctx); err != nil {
		return fail(err)
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, AuditPolicy: auditPolicy, Log: os.Stderr})
	if err != nil {
		return fail(err)
	}
	defer cp.Stop() //nolint:errcheck // the tests have spoken
	if shared, err = newCluster(ctx, cp); err != nil {
		return fail(err)
	}
	for i := range nodes {
		if err := shared.addNode(ctx, nodeName(i)); err != nil {
			return fail(err)
		}
	}
	beating, stop := context.WithCancel(ctx)
	defer stop()
	go shared.beat(beating)
	code := m.Run()
	if err := shared.checkLog(); err != nil {
		return fail(err)
	}
	return code
}

// newCluster installs warmpool, the template that the shipped placeholder is for, and no placeholder pods.
func newCluster(ctx context.Context, cp *controlplane.ControlPlane) (*cluster, error) {
	admin, err := client.NewWithWatch(cp.Config, client.Options{})
	if err != nil {
		return nil, err
	}
	c := &cluster{ControlPlane: cp, admin: admin}
	root, err := install.Root()
	if err != nil {
		return nil, err
	}
	if c.shipped, err = install.Render(filepath.Join(root, "manifests", "overlays", "embedded")); err != nil {
		return nil, err
	}
	if c.warmpool, err = install.Up(ctx, cp, install.Options{Root: root}); err != nil {
		return nil, err
	}
	// Nor pods of their autoscalers: no kubelet would end them.
	if _, _, err := cp.Kubectl(ctx, "", "scale", "--replicas=0", "-n", placeholders, "deployment", "--all"); err != nil {
		return nil, err
	}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: templates}}); err != nil {
		return nil, err
	}
	return c, c.setImage(ctx, first)
}

// setImage sets the image of the template that the placeholders cpu pull.
func (c *cluster) setImage(ctx context.Context, image string) error {
	objects, err := controlplane.Decode(strings.NewReader(fmt.Sprintf(
		"{apiVersion: workspace.jupyter.org/v1alpha1, kind: WorkspaceTemplate, metadata: {namespace: %s, name: cpu}, spec: {defaultImage: %q}}", templates, image)))
	if err != nil {
		return err
	}
	return c.Apply(ctx, objects...)
}

// start runs another replica of warmpool.
func (c *cluster) start(t *testing.T, port int) *install.Warmpool {
	t.Helper()
	w, err := install.Start(t.Context(), c.ControlPlane, filepath.Join(c.Dir, "warmpool"), c.shipped, port)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// checkLog looks for what must not be in warmpool's log after all that the tests did to it.
func (c *cluster) checkLog() error {
	log, err := os.ReadFile(c.warmpool.Log)
	if err != nil {
		return fmt.Errorf("read the log of warmpool: %w", err)
	}
	for line := range strings.Lines(string(log)) {
		for _, bad := range []string{"forbidden", "panic", "DATA RACE", "Reconciler error"} {
			if strings.Contains(line, bad) {
				return fmt.Errorf("the log of warmpool has a line with %q: %s", bad, line)
			}
		}
	}
	return nil
}

// expire has the lease of a leader that was killed expire at once; else the next one waits for 45 s.
func (c *cluster) expire(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: "warmpool"}}
	if err := c.admin.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}
