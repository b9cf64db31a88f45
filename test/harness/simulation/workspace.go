package simulation

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	workspaceLabel = "workspace.jupyter.org/workspace-name"
	templateLabel  = "workspace.jupyter.org/template-name"
	poll           = 50 * time.Millisecond
)

// Workspace is one that somebody asks for.
type Workspace struct {
	// Name is unique among those of the day.
	Name string `json:"name"`
	// Kind is "cpu" or "gpu": its WorkspaceTemplate, and the pool where it belongs.
	Kind string `json:"kind"`
	// Image is the one that the template has, usually.
	Image string `json:"image"`
	// CPU is what it requests, in cores; memory is 4 GiB for each. Those of kind gpu have a GPU too.
	CPU int64 `json:"cpu"`
}

// Deployment is what jupyter-k8s makes for a Workspace. The toleration of kind gpu is the one that a cluster's plugin
// ExtendedResourceToleration adds, which the API server of the simulation does not run.
func (w *Workspace) Deployment() *appsv1.Deployment {
	labels := map[string]string{
		"app": "jupyter", "workspace.jupyter.org/component": "workspace", workspaceLabel: w.Name,
		templateLabel: w.Kind, "workspace.jupyter.org/template-namespace": templates,
	}
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(w.CPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(w.CPU<<32, resource.BinarySI),
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "workspace", Image: w.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8888}},
	}}}
	if w.Kind == "gpu" {
		requests["nvidia.com/gpu"] = resource.MustParse("1")
		spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: requests}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Team, Name: "workspace-" + w.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{workspaceLabel: w.Name}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// Create starts a Workspace. Where it is to differ, create a changed Deployment instead.
func (c *Cluster) Create(ctx context.Context, w Workspace) error {
	return c.Admin.Create(ctx, w.Deployment())
}

// Delete stops a Workspace; its pod ends a moment later.
func (c *Cluster) Delete(ctx context.Context, name string) error {
	return c.Admin.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Team, Name: "workspace-" + name}},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// WaitRunning waits until a pod of each Workspace runs and gives their last starts in the order of the names. The error
// says who does not run, and why.
func (c *Cluster) WaitRunning(ctx context.Context, limit time.Duration, names ...string) ([]Startup, error) {
	starts := make([]Startup, len(names))
	err := wait.PollUntilContextTimeout(ctx, poll, limit, true, func(context.Context) (bool, error) {
		for i, name := range names {
			start, ok := c.Book.last(name)
			if !ok || start.Running.IsZero() {
				return false, nil
			}
			starts[i] = start
		}
		return true, nil
	})
	for i, name := range names {
		if err != nil && starts[i].Workspace == "" {
			return nil, fmt.Errorf("wait for Workspace %s: %w: %s", name, err, c.why(ctx, name))
		}
	}
	return starts, err
}

// why says what keeps a Workspace from running.
func (c *Cluster) why(ctx context.Context, name string) string {
	var pods corev1.PodList
	if err := c.Admin.List(ctx, &pods, client.InNamespace(Team), client.MatchingLabels{workspaceLabel: name}); err != nil {
		return err.Error()
	}
	for i := range pods.Items {
		for _, condition := range pods.Items[i].Status.Conditions {
			if condition.Status == corev1.ConditionFalse {
				return fmt.Sprintf("pod %s on node %q: %s %s", pods.Items[i].Name, pods.Items[i].Spec.NodeName, condition.Type, condition.Message)
			}
		}
	}
	return "it has no pod that waits"
}

// Warm waits until as many placeholders of a kind, "cpu" or "gpu", as the Deployment asks for, and at least one, have
// pulled this image.
func (c *Cluster) Warm(ctx context.Context, limit time.Duration, kind, image string) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, poll, limit, true, func(ctx context.Context) (bool, error) {
		var deployment appsv1.Deployment
		if err := c.Admin.Get(ctx, client.ObjectKey{Namespace: Placeholders, Name: "spaces-placeholder-" + kind}, &deployment); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		warm, wanted := c.Book.warm(kind, image), int(*deployment.Spec.Replicas)
		last = fmt.Sprintf("%d of %d", warm, wanted)
		return wanted > 0 && warm >= wanted, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the placeholders of %s to pull %s: %w: %s", kind, image, err, last)
	}
	return nil
}
