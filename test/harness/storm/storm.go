// Package storm has clusters with many pools, WorkspaceTemplates and placeholders, in which image sync has much to do.
package storm

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/prepull"
)

// Namespace is that of the placeholders, templates are in another.
const (
	Namespace          = "overprovisioning"
	templatesNamespace = "default"
)

// Layout says how many pools there are, and of what each has how many.
type Layout struct{ Pools, Templates, Placeholders int }

// Cluster is a control plane on which warmpool is installed, but does not run yet.
type Cluster struct {
	*controlplane.ControlPlane
	Layout
	// Admin is a member of system:masters.
	Admin client.Client
	// Port is the one that the webhook configurations name.
	Port int

	shipped     []*unstructured.Unstructured
	placeholder *appsv1.Deployment // as shipped
	binary      string
}

// Install puts warmpool onto the control plane, with the pools of the layout in its configuration.
func Install(ctx context.Context, cp *controlplane.ControlPlane, layout Layout) (*Cluster, error) {
	c := &Cluster{ControlPlane: cp, Layout: layout}
	root, err := install.Root()
	if err != nil {
		return nil, err
	}
	crds, err := install.CRDs(root)
	if err != nil {
		return nil, err
	}
	if c.shipped, err = install.Render(filepath.Join(root, "manifests", "overlays", "embedded")); err != nil {
		return nil, err
	}
	if err := c.adapt(); err != nil {
		return nil, err
	}
	if c.Port, err = controlplane.FreePort(); err != nil {
		return nil, err
	}
	local, err := install.Localize(c.shipped, c.Port)
	if err != nil {
		return nil, err
	}
	// The placeholders of the shipped pools are not wanted; no one admits any yet, either.
	local = slices.DeleteFunc(local, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if err := cp.Apply(ctx, slices.Concat(crds, local)...); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(cp.Config)
	config.WarningHandler = rest.NoWarnings{} // there are as many as placeholders
	if c.Admin, err = client.New(config, client.Options{}); err != nil {
		return nil, err
	}
	c.binary, err = install.Build(ctx, root, cp.Dir)
	return c, err
}

// adapt writes the pools into the configuration, and finds the placeholder that all others are like.
func (c *Cluster) adapt() error {
	for _, object := range c.shipped {
		switch {
		case object.GetKind() == "ConfigMap" && object.GetNamespace() == install.Namespace:
			if err := unstructured.SetNestedField(object.Object, c.configuration(), "data", "warmpool.yaml"); err != nil {
				return err
			}
		case object.GetKind() == "Deployment" && object.GetName() == "spaces-placeholder-cpu":
			c.placeholder = &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, c.placeholder); err != nil {
				return err
			}
		}
	}
	if c.placeholder == nil {
		return fmt.Errorf("the manifests hold no Deployment spaces-placeholder-cpu")
	}
	return nil
}

func (c *Cluster) configuration() string {
	var text strings.Builder
	text.WriteString("apiVersion: config.warmpool.sh/v1alpha1\nkind: WarmPoolConfiguration\npools:\n")
	for pool := range c.Pools {
		fmt.Fprintf(&text, "- name: %s\n  nodePools: [%[1]s]\n  templates:\n", PoolName(pool))
		for i := range c.Templates {
			fmt.Fprintf(&text, "  - {namespace: %s, name: %s}\n", templatesNamespace, TemplateName(pool, i))
		}
	}
	return text.String()
}

// Run starts a replica of warmpool that serves on port; it returns when it is ready.
func (c *Cluster) Run(ctx context.Context, port int) (*install.Warmpool, error) {
	return install.Start(ctx, c.ControlPlane, c.binary, c.shipped, port)
}

// PoolName is the name of a pool and of its NodePool.
func PoolName(pool int) string { return fmt.Sprintf("pool-%03d", pool) }

// TemplateName is the name of a pool's template.
func TemplateName(pool, i int) string { return fmt.Sprintf("%s-%d", PoolName(pool), i) }

// PlaceholderName is the name of a pool's placeholder.
func PlaceholderName(pool, i int) string { return fmt.Sprintf("ph-%s-%d", PoolName(pool), i) }

// Image is a template's image of some version.
func Image(pool, i, version int) string {
	return fmt.Sprintf("registry.example/team/%s:%d", TemplateName(pool, i), version)
}

// Fill creates the NodePools, templates and placeholders. A placeholder needs a replica that admits it.
func (c *Cluster) Fill(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(8)
	for pool := range c.Pools {
		group.Go(func() error {
			if err := c.create(ctx, NodePool(pool)); err != nil {
				return err
			}
			for i := range c.Templates {
				if err := c.create(ctx, template(pool, i, 0)); err != nil {
					return err
				}
			}
			for i := range c.Placeholders {
				if err := c.create(ctx, c.Placeholder(pool, i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *Cluster) create(ctx context.Context, object client.Object) error {
	if err := c.Admin.Create(ctx, object); err != nil {
		return fmt.Errorf("create %s: %w", object.GetName(), err)
	}
	return nil
}

// NodePool is that of a pool.
func NodePool(pool int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": PoolName(pool)},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": "example.com", "kind": "NodeClass", "name": "default"},
			"requirements": []any{map[string]any{"key": "kubernetes.io/os", "operator": "In", "values": []any{"linux"}}},
		}}},
	}}
}

func template(pool, i, version int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workspace.jupyter.org/v1alpha1", "kind": "WorkspaceTemplate",
		"metadata": map[string]any{"namespace": templatesNamespace, "name": TemplateName(pool, i)},
		"spec":     map[string]any{"defaultImage": Image(pool, i, version)},
	}}
}

// Placeholder is like the shipped one. It does not name the images of its templates.
func (c *Cluster) Placeholder(pool, i int) *appsv1.Deployment {
	d := c.placeholder.DeepCopy()
	d.ObjectMeta = metav1.ObjectMeta{Namespace: Namespace, Name: PlaceholderName(pool, i), Labels: map[string]string{
		"app": "spaces-overprovisioning", "warmpool.sh/pool": PoolName(pool),
	}}
	pods := map[string]string{"app": d.Name}
	d.Spec.Replicas = new(int32)
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: pods}, pods
	affinity := d.Spec.Template.Spec.Affinity
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{PoolName(pool)}
	affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels = pods
	return d
}

// Edit gives a template the image of a version.
func (c *Cluster) Edit(ctx context.Context, pool, i, version int) error {
	patch := fmt.Sprintf(`{"spec":{"defaultImage":%q}}`, Image(pool, i, version))
	if err := c.Admin.Patch(ctx, template(pool, i, 0), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("edit template %s: %w", TemplateName(pool, i), err)
	}
	return nil
}

// Pulls reports whether a placeholder pulls exactly the images.
func Pulls(d *appsv1.Deployment, images []string) bool {
	return d != nil && slices.Equal(prepull.Pulled(d.Spec.Template.Spec.InitContainers), images)
}
