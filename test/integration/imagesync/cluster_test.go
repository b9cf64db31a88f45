package imagesync_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook/config"
)

const (
	placeholders = "overprovisioning"
	templates    = "shared-templates"
	poolLabel    = "example.com/pool"
	// unseen is a label of Deployments that the API server keeps from warmpool's webhooks.
	unseen = "example.com/unseen"
	// warmpoolUser is who warmpool is to the API server.
	warmpoolUser = "system:serviceaccount:warmpool-system:warmpool"
)

// auditPolicy notes what warmpool writes to Deployments.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: [` + warmpoolUser + `]
  verbs: [create, update, patch, delete]
  resources: [{group: apps, resources: [deployments]}]
- level: None
`

// cluster is a control plane with a warmpool.
type cluster struct {
	*controlplane.ControlPlane
	admin    client.WithWatch
	warmpool *install.Warmpool
}

func newCluster(ctx context.Context, cp *controlplane.ControlPlane, crds bool) (*cluster, error) {
	admin, err := client.NewWithWatch(cp.Config, client.Options{})
	if err != nil {
		return nil, err
	}
	c := &cluster{ControlPlane: cp, admin: admin}
	if c.warmpool, err = install.Up(ctx, cp, install.Options{WithoutCRDs: !crds}); err != nil {
		return nil, err
	}
	return c, admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: templates}})
}

// furnish keeps the label unseen from the webhooks, makes the nodes and puts the pools of all tests in force.
func (c *cluster) furnish(ctx context.Context) error {
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: unseen, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	for _, object := range []client.Object{&mutating, &validating} {
		if err := c.admin.Get(ctx, client.ObjectKey{Name: "warmpool"}, object); err != nil {
			return err
		}
	}
	for i := range mutating.Webhooks {
		if mutating.Webhooks[i].Name == "placeholders.warmpool.sh" {
			mutating.Webhooks[i].ObjectSelector = selector
		}
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ObjectSelector = selector
	}
	if err := errors.Join(c.admin.Update(ctx, &mutating), c.admin.Update(ctx, &validating)); err != nil {
		return err
	}
	for pool, count := range nodesOf {
		for i := range count {
			if err := c.CreateNode(ctx, node(pool, fmt.Sprintf("%s-%d", pool, i))); err != nil {
				return err
			}
		}
	}
	return c.configure(ctx, &config.WarmPoolConfiguration{
		Workspaces: config.Workspaces{ImageAliases: aliases}, Pools: pools,
		Exemptions: []config.Exemption{{Rules: []string{"placeholder-image"}, Namespace: placeholders, Name: "exempt", Reason: "test"}},
	})
}

func node(pool, name string) *corev1.Node {
	offer := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("30"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", poolLabel: pool},
		},
		Status: corev1.NodeStatus{Capacity: offer, Allocatable: offer},
	}
}

// configure puts a configuration in force.
func (c *cluster) configure(ctx context.Context, cfg *config.WarmPoolConfiguration) error {
	applied := func() (float64, error) { return c.readMetric(ctx, "warmpool_config_reloads_total", `result="applied"`) }
	before, err := applied()
	if err != nil {
		return err
	}
	cfg.APIVersion, cfg.Kind = config.APIVersion, config.Kind
	content, err := yaml.Marshal(cfg)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.warmpool.ConfigFile, content, 0o600); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, step, limit, true, func(context.Context) (bool, error) {
		now, err := applied()
		return now > before, err
	})
}

// checkLog looks for what must not be in warmpool's log after all that the tests did to it.
func (c *cluster) checkLog() error {
	log, err := os.ReadFile(c.warmpool.Log)
	if err != nil {
		return fmt.Errorf("read the log of warmpool: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(log)) {
		for _, bad := range []string{"forbidden", "panic", "DATA RACE", "Reconciler error", "Event not made"} {
			if strings.Contains(line, bad) {
				errs = append(errs, fmt.Errorf("the log of warmpool has a line with %q: %s", bad, line))
			}
		}
	}
	return errors.Join(errs...)
}
