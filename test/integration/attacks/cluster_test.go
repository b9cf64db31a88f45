// Package attacks_test performs attacks on warmpool as it ships: one replica, under its memory limit, behind a real API
// server through which Workspace pods are created meanwhile.
package attacks_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

type cluster struct {
	*controlplane.ControlPlane
	admin    client.Client
	warmpool *install.Warmpool
	// memoryLimit is that of the shipped Deployment.
	memoryLimit int64
	// start starts the one replica.
	start func()
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	shipped, err := install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	limit := memoryLimitOf(t, shipped)
	memory := newMemoryGroup(t, limit)
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	c := &cluster{ControlPlane: plane, memoryLimit: limit}
	c.admin, err = client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	crds, err := install.CRDs(root)
	require.NoError(t, err)
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	local, err := install.Localize(shipped, port)
	require.NoError(t, err)
	examples, err := install.Examples(root)
	require.NoError(t, err)
	require.NoError(t, plane.Apply(t.Context(), slices.Concat(crds, local, examples)...))
	binary, err := install.Build(t.Context(), root, plane.Dir)
	require.NoError(t, err)
	limited := memory.wrap(t, plane.Dir, binary)
	c.start = func() {
		t.Helper()
		c.warmpool, err = install.Start(t.Context(), plane, limited, shipped, port)
		require.NoError(t, err)
	}
	c.start()
	return c
}

// memoryLimitOf is what the shipped Deployment may use.
func memoryLimitOf(t *testing.T, shipped []*unstructured.Unstructured) int64 {
	t.Helper()
	for _, object := range shipped {
		if object.GetKind() == "Deployment" && object.GetName() == install.Deployment {
			var d appsv1.Deployment
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d))
			return d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
		}
	}
	t.Fatal("no Deployment of warmpool in the manifests")
	return 0
}

// create creates ordinary Workspace pods through the API server until stop is called, which gives what became of them.
func (c *cluster) create(t *testing.T) (stop func() (created, refused, unplaced int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var created, refused, unplaced atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			pod := workspace(strconv.FormatInt(time.Now().UnixNano(), 10))
			err := c.admin.Create(ctx, pod)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				refused.Add(1)
			case pod.Spec.Affinity == nil:
				unplaced.Add(1)
			default:
				created.Add(1)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() (int, int, int) {
		cancel()
		<-done
		return int(created.Load()), int(refused.Load()), int(unplaced.Load())
	}
}

func workspace(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "workspace-" + name, Namespace: "default", Labels: map[string]string{
			"workspace.jupyter.org/workspace-name": name,
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "registry.example/nb:1"}}},
	}
}

// caller is a client of the webhook port with one HTTP/2 connection of its own.
func caller() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}
