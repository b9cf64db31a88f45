// Package rbac_test holds the rights that the manifests give to warmpool against what it asks a real API server for.
package rbac_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
)

const (
	limit = time.Minute // for anything that is waited for
	step  = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// Warmpool asks for nothing that it may not, and for everything that it may.
func TestRightsAreThoseThatAreUsed(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	binary, err := install.Build(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	for _, overlay := range []string{"embedded", "cert-manager", "cel"} {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel() // most of the time they wait
			c := newCluster(t, overlay, binary)
			if overlay != "cert-manager" {
				c.certificates(t)
			}
			c.audits(t)
			c.images(t)
			c.nodes(t)
			c.warmth(t)
			c.configuration(t)
			assert.EventuallyWithT(t, func(collect *assert.CollectT) {
				allowed, _, err := asked(c.Dir)
				if assert.NoError(collect, err) {
					assert.Empty(collect, tooMuch(c.grants, allowed))
				}
			}, limit, step)
			_, forbidden, err := asked(c.Dir)
			require.NoError(t, err)
			assert.Empty(t, forbidden, "warmpool asked for what no role grants, or wrote what the policy warmpool-own-writes refuses")
		})
	}
}

// certificates takes away caBundle, the CA's content and the CA, one after another; each comes back.
func (c *cluster) certificates(t *testing.T) {
	c.askedFor(t, "create of secrets")
	c.setBundle(t, nil)
	c.askedFor(t, "patch of mutatingwebhookconfigurations")
	c.askedFor(t, "patch of validatingwebhookconfigurations")
	secret := &corev1.Secret{}
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: "warmpool-ca"}, secret))
	secret.Data[corev1.TLSCertKey] = []byte("no certificate")
	require.NoError(t, c.admin.Update(t.Context(), secret))
	c.askedFor(t, "update of secrets warmpool-ca")
}

// images has the placeholder pull another image, which a writer whom no webhook sees takes back until image sync asks who
// it is.
func (c *cluster) images(t *testing.T) {
	c.hidePlaceholders(t)
	key := client.ObjectKey{Namespace: "overprovisioning", Name: "spaces-placeholder-cpu"}
	const image = "registry.example/team/notebook:2"
	c.setImage(t, image)
	for range 3 {
		d := &appsv1.Deployment{}
		await.NoError(t, limit, "the placeholder pulls the new image", func() error {
			if err := c.admin.Get(t.Context(), key, d); err != nil {
				return err
			}
			if now := d.Spec.Template.Spec.InitContainers[0].Image; now != image {
				return errors.New(now)
			}
			return nil
		})
		changed := d.DeepCopy()
		changed.Spec.Template.Spec.InitContainers[0].Image = "registry.example/team/notebook:1"
		require.NoError(t, c.admin.Patch(t.Context(), changed, client.StrategicMergeFrom(d)))
	}
	c.askedFor(t, "get of deployments.apps spaces-placeholder-cpu")
	c.askedFor(t, "create of events.events.k8s.io")
}

// hidePlaceholders has the API server send none of them to warmpool.
func (c *cluster) hidePlaceholders(t *testing.T) {
	t.Helper()
	c.changeWebhooks(t, func(_ *admissionv1.WebhookClientConfig, objects **metav1.LabelSelector) {
		*objects = &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/none": "has-this"}}
	})
	broken, err := os.ReadFile(filepath.Join(c.root, "manifests", "try", "placeholder-broken.yaml"))
	require.NoError(t, err)
	text := strings.Replace(string(broken), "name: spaces-placeholder-gpu", "name: unseen", 1)
	await.NoError(t, limit, "no placeholder is sent", func() error {
		_, _, err := c.Kubectl(t.Context(), text, "create", "--dry-run=server", "-f", "-")
		return err
	})
}

// warmth has a placeholder's pod on a node pull its image, as a kubelet tells it.
func (c *cluster) warmth(t *testing.T) {
	d := &appsv1.Deployment{}
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: "overprovisioning", Name: "spaces-placeholder-gpu"}, d))
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.Namespace, pod.Name, pod.Spec.NodeName = d.Namespace, d.Name+"-1-1", "node-0"
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name + "-1", UID: "1", Controller: new(true)}}
	require.NoError(t, c.admin.Create(t.Context(), pod))
	pulled := pod.DeepCopy()
	for _, container := range pod.Spec.InitContainers {
		pulled.Status.InitContainerStatuses = append(pulled.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}},
		})
	}
	require.NoError(t, c.admin.Status().Patch(t.Context(), pulled, client.MergeFrom(pod)))
	c.askedFor(t, "patch of pods "+pod.Name)
}

func (c *cluster) setImage(t *testing.T, image string) {
	t.Helper()
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "workspace.jupyter.org/v1alpha1", "kind": "WorkspaceTemplate"}}
	template.SetNamespace("jupyter-k8s-shared")
	template.SetName("cpu")
	require.NoError(t, c.admin.Patch(t.Context(), template, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"defaultImage":"`+image+`"}}`))))
}

// nodes of the pool are seen, one after another.
func (c *cluster) nodes(t *testing.T) {
	for i, verb := range []string{"create", "update"} {
		offer := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("48"), corev1.ResourceMemory: resource.MustParse("180Gi"), corev1.ResourcePods: resource.MustParse("200"),
		}
		require.NoError(t, c.CreateNode(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{
				"karpenter.sh/nodepool": "spaces-cpu", corev1.LabelInstanceTypeStable: fmt.Sprintf("type-%d", i),
			}},
			Status: corev1.NodeStatus{Capacity: offer, Allocatable: offer},
		}))
		c.askedFor(t, verb+" of configmaps")
		await.NoError(t, limit, "what is seen of the pool is kept", func() error {
			return c.admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: "warmpool-last-seen"}, &corev1.ConfigMap{})
		})
	}
}

// configuration has every replica refuse a file.
func (c *cluster) configuration(t *testing.T) {
	for _, w := range c.replicas {
		require.NoError(t, os.WriteFile(w.ConfigFile, []byte("pools: ["), 0o600))
		await.NoError(t, limit, "the file is refused", func() error {
			log, err := os.ReadFile(w.Log)
			if err == nil && !strings.Contains(string(log), "new configuration refused") {
				err = errors.New("not yet")
			}
			return err
		})
	}
}
