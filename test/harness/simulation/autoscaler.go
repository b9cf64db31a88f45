package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/sizing"
)

// autoscalerLabel is that of CPA's Deployments.
var autoscalerLabel = client.MatchingLabels{"app": "spaces-cpa"}

// withoutAutoscalers gives the objects with no pods of CPA: it is played.
func withoutAutoscalers(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetLabels()["app"] == autoscalerLabel["app"] {
			object = object.DeepCopy()
			_ = unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas") // every Deployment has a spec
		}
		all = append(all, object)
	}
	return all
}

// keepScaling does what the Cluster Proportional Autoscaler does, every so often.
func (c *Cluster) keepScaling(ctx context.Context) {
	for after(ctx, c.delays.Scale) {
		if err := c.autoscale(ctx); err != nil && ctx.Err() == nil {
			c.logf("autoscaler: %v", err)
		}
	}
}

// autoscale goes by the arguments of each Deployment of CPA and by the ConfigMap that these name, and sets replicas by the
// scale subresource.
func (c *Cluster) autoscale(ctx context.Context) error {
	var all appsv1.DeploymentList
	err := c.Admin.List(ctx, &all, client.InNamespace(Placeholders), autoscalerLabel)
	for i := range all.Items {
		err = errors.Join(err, c.scale(ctx, &all.Items[i]))
	}
	return err
}

func (c *Cluster) scale(ctx context.Context, autoscaler *appsv1.Deployment) error {
	container := &autoscaler.Spec.Template.Spec.Containers[0]
	flags := map[string]string{}
	for _, arg := range slices.Concat(container.Command, container.Args) {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flags[name] = value
	}
	var parameters corev1.ConfigMap
	if err := c.Admin.Get(ctx, client.ObjectKey{Namespace: flags["namespace"], Name: flags["configmap"]}, &parameters); err != nil {
		return err
	}
	var linear sizing.Linear
	if err := json.Unmarshal([]byte(parameters.Data["linear"]), &linear); err != nil {
		return fmt.Errorf("parameters of %s: %w", autoscaler.Name, err)
	}
	nodes, cores, err := c.count(ctx, flags["nodelabels"])
	if err != nil {
		return err
	}
	target := &appsv1.Deployment{}
	target.Namespace, target.Name = flags["namespace"], strings.TrimPrefix(flags["target"], "deployment/")
	replicas := int32(linear.Replicas(nodes, cores))
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale := &autoscalingv1.Scale{}
		if err := c.Admin.SubResource("scale").Get(ctx, target, scale); err != nil {
			return err
		}
		if scale.Spec.Replicas == replicas {
			return nil
		}
		c.logf("autoscaler: %s from %d to %d replicas for %d nodes", target.Name, scale.Spec.Replicas, replicas, nodes)
		scale.Spec.Replicas = replicas
		return c.Admin.SubResource("scale").Update(ctx, target, client.WithSubResourceBody(scale))
	})
}

// count gives the nodes that are ready and schedulable, and their allocatable cores.
func (c *Cluster) count(ctx context.Context, nodeLabels string) (nodes int, cores float64, err error) {
	selector, err := labels.Parse(nodeLabels)
	if err != nil {
		return 0, 0, err
	}
	var list corev1.NodeList
	if err := c.cache.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return 0, 0, err
	}
	for i := range list.Items {
		node := &list.Items[i]
		if node.Spec.Unschedulable || !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			continue
		}
		nodes++
		cores += node.Status.Allocatable.Cpu().AsApproximateFloat64()
	}
	return nodes, cores, nil
}
