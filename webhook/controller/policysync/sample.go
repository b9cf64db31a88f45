package policysync

import (
	"context"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

const (
	// settle is how long an API server may take to go by what was written.
	settle = 20 * time.Second
	step   = 200 * time.Millisecond
)

const (
	// sampleLabel has the value sampleTrial on samples that are placed by the parameters on trial.
	sampleLabel = "warmpool.sh/placement-check"
	sampleTrial = "trial"
	// goneBy is the annotation in which the policy says, to who has it, which resourceVersion of the parameters it went by.
	goneBy = "warmpool.sh/placement-parameters"
)

// check creates a pod of each pool as a dry run, with more labels, until the API server makes of it what the webhook would, by
// the parameters.
func (k *Keeper) check(ctx context.Context, e *policy.Evaluator, parameters *corev1.ConfigMap, labels map[string]string) error {
	for _, pool := range e.Pools().All() {
		sample := sampleOf(e, pool, k.namespace)
		if sample == nil {
			continue
		}
		maps.Copy(sample.Labels, labels)
		var fault error
		err := wait.PollUntilContextTimeout(ctx, step, settle, true, func(ctx context.Context) (bool, error) {
			fault = k.try(ctx, e, sample, parameters)
			return fault == nil, nil
		})
		if err == nil {
			k.count(resultSame)
			continue
		}
		if fault == nil || ctx.Err() != nil {
			return err
		}
		k.count(resultDifferent)
		return fmt.Errorf("a sample pod of pool %s: %w", pool.Config.Name, fault)
	}
	return nil
}

// try says how the API server differs from the webhook.
func (k *Keeper) try(ctx context.Context, e *policy.Evaluator, sample *corev1.Pod, parameters *corev1.ConfigMap) error {
	want := e.Pod(sample.DeepCopy(), k.namespace)
	e.Mutate(want)
	got := sample.DeepCopy()
	if err := k.api.Create(ctx, got, client.DryRunAll, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("the API server refuses it as a dry run in namespace %s: %w", k.namespace, err)
	}
	if !equality.Semantic.DeepEqual(want.Pod.Spec.Affinity, got.Spec.Affinity) {
		return fmt.Errorf("the policy gives it other affinity than the webhook would")
	}
	if lacks := e.Mutate(e.Pod(got, k.namespace)); len(lacks) > 0 {
		return fmt.Errorf("after the policy the webhook would still write %s", lacks[0].Path)
	}
	if got.Annotations[goneBy] != parameters.ResourceVersion {
		return fmt.Errorf("the policy does not go by ConfigMap %s as it was written", parameters.Name)
	}
	return nil
}

// sampleOf is a Workspace pod that belongs to a pool, and that the strictest Pod Security level lets in; nil where the pool's
// accelerators name none of which one could ask for.
func sampleOf(e *policy.Evaluator, pool *placement.Pool, namespace string) *corev1.Pod {
	resources := corev1.ResourceList{}
	if globs := pool.Config.Accelerators; len(globs) > 0 {
		device := deviceOf(globs)
		if device == "" {
			return nil
		}
		resources[device] = resource.MustParse("1")
	}
	image := "placement-check"
	if images := e.Filling(pool).Images; len(images) > 0 {
		image = images[0]
	}
	labels := selected(e.Config().Workspaces.Selector)
	labels["warmpool.sh/pool"] = pool.Config.Name
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "placement-check-", Labels: labels, Annotations: map[string]string{goneBy: ""},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "workspace", Image: image, Resources: corev1.ResourceRequirements{Limits: resources, Requests: resources},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(bool), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// deviceOf is a resource that some glob matches; empty where that is not to be had by filling in its stars.
func deviceOf(globs []string) corev1.ResourceName {
	for _, glob := range globs {
		name := strings.NewReplacer("*", "gpu", "?", "x").Replace(glob)
		if ok, err := path.Match(glob, name); err == nil && ok && strings.Contains(name, "/") && len(validation.IsQualifiedName(name)) == 0 {
			return corev1.ResourceName(name)
		}
	}
	return ""
}

// selected are labels that a selector takes.
func selected(selector *metav1.LabelSelector) map[string]string {
	labels := map[string]string{}
	if selector == nil {
		return labels
	}
	maps.Copy(labels, selector.MatchLabels)
	for _, r := range selector.MatchExpressions {
		switch _, given := labels[r.Key]; {
		case given:
		case r.Operator == metav1.LabelSelectorOpExists:
			labels[r.Key] = "placement-check"
		case r.Operator == metav1.LabelSelectorOpIn && len(r.Values) > 0:
			labels[r.Key] = r.Values[0]
		}
	}
	return labels
}
