// Package scaling_test proves that warmpool sizes pools by demand, with real controllers, a real scheduler and KWOK's nodes. It is
// installed from the variant that ships.
package scaling_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

const (
	limit        = 2 * time.Minute // for anything that is waited for
	placeholders = "overprovisioning"
	variant      = "variants/demand"
	cpu, gpu     = "spaces-placeholder-cpu", "spaces-placeholder-gpu"
)

// auditPolicy notes what is written to placeholders, their scale, and what is known of the demand.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: ["system:serviceaccount:warmpool-system:warmpool"]
  verbs: [create, update, patch, delete]
  resources: [{group: apps, resources: [deployments/scale]}, {group: "", resources: [configmaps]}]
- level: None
`

// cluster is a control plane with nodes of both pools, and a warmpool.
type cluster struct {
	*controlplane.ControlPlane
	admin    client.Client
	warmpool *install.Warmpool
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	needs.Main(needs.ControlPlane, controlplane.Ready(context.Background(), options()))
	os.Exit(m.Run())
}

func options() controlplane.Options {
	return controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true, AuditPolicy: auditPolicy, Log: os.Stderr}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	ctx := t.Context()
	plane, err := controlplane.Start(context.WithoutCancel(ctx), options())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plane.Stop()) })
	c := &cluster{ControlPlane: plane}
	c.admin, err = client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	root, err := install.Root()
	require.NoError(t, err)
	crds, err := install.CRDs(root)
	require.NoError(t, err)
	examples, err := install.Examples(root)
	require.NoError(t, err)
	require.NoError(t, plane.Apply(ctx, append(crds, examples...)...))
	for _, pool := range []string{"spaces-cpu", "spaces-gpu"} {
		for i := range 6 {
			require.NoError(t, c.CreateNode(ctx, node(pool, fmt.Sprintf("%s-%d", pool, i))))
		}
	}
	c.warmpool, err = install.Up(context.WithoutCancel(ctx), plane, install.Options{Overlay: variant})
	require.NoError(t, err)
	return c
}

func node(pool, name string) *corev1.Node {
	offer := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("48"), corev1.ResourceMemory: resource.MustParse("180Gi"), corev1.ResourcePods: resource.MustParse("50"),
	}
	if pool == "spaces-gpu" {
		offer["nvidia.com/gpu"] = resource.MustParse("4")
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "karpenter.sh/nodepool": pool,
			corev1.LabelInstanceTypeStable: "type",
		}},
		Status: corev1.NodeStatus{Capacity: offer, Allocatable: offer},
	}
}

// configure puts other sizes of the two pools in force.
func (c *cluster) configure(t *testing.T, cpu, gpu string) {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: config.warmpool.sh/v1alpha1
kind: WarmPoolConfiguration
pools:
- {name: cpu, nodePools: [spaces-cpu], sizing: {mode: Coexist}, size: %s}
- {name: gpu, nodePools: [spaces-gpu], accelerators: ["nvidia.com/*"], sizing: {mode: Exclusive}, size: %s}
rules: {placeholder-sizing-mode: Audit, placeholder-image: Off}
`, cpu, gpu)
	require.NoError(t, os.WriteFile(c.warmpool.ConfigFile, []byte(text), 0o600))
}

func (c *cluster) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: placeholders, Name: name}, &d))
	return &d
}

// has waits until a placeholder has so many replicas.
func (c *cluster) has(t *testing.T, name string, replicas int32) {
	t.Helper()
	await.NoProblem(t, limit, "the replicas of "+name, func() string {
		if now := *c.deployment(t, name).Spec.Replicas; now != replicas {
			return fmt.Sprintf("%d, not %d", now, replicas)
		}
		return ""
	})
}

// tells waits for an Event on a placeholder.
func (c *cluster) tells(t *testing.T, name, reason, note string) {
	t.Helper()
	await.NoProblem(t, limit, "an Event "+reason, func() string {
		var list eventsv1.EventList
		require.NoError(t, c.admin.List(t.Context(), &list, client.InNamespace(placeholders)))
		notes := ""
		for _, e := range list.Items {
			if e.Regarding.Name == name && e.Reason == reason {
				if notes += e.Note + "\n"; strings.Contains(e.Note, note) {
					return ""
				}
			}
		}
		return "it says: " + notes
	})
}

// write is one that the API server has taken.
type write struct {
	name string
	at   time.Time
}

// writes are those of warmpool to a resource, such as deployments/scale.
func (c *cluster) writes(t *testing.T, resource string) []write {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(c.Dir, "audit.log"))
	require.NoError(t, err)
	var found []write
	for line := range bytes.Lines(log) {
		var event struct {
			ObjectRef                struct{ Name, Resource, Subresource string }
			ResponseStatus           struct{ Code int }
			RequestReceivedTimestamp time.Time
		}
		if json.Unmarshal(line, &event) == nil && strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/") == resource && event.ResponseStatus.Code < 300 {
			found = append(found, write{event.ObjectRef.Name, event.RequestReceivedTimestamp})
		}
	}
	return found
}
