package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	placeholderNamespace = "overprovisioning"
	replicas             = 2 // the autoscalers' min, and as many as there are nodes
)

// placeholdersRun scales the placeholders as the cluster-proportional autoscaler does, for which KWOK runs no program.
func (t *tour) placeholdersRun(ctx context.Context) error {
	t.say("Each of the two Deployments is scaled to %d, as the autoscaler beside it would do.", replicas)
	for _, kind := range []string{"cpu", "gpu"} {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: placeholderNamespace, Name: "spaces-placeholder-" + kind}}
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		if err := t.admin.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale)); err != nil {
			return err
		}
	}
	t.line("", "")
	for _, kind := range []string{"cpu", "gpu"} {
		pods, err := t.warm(ctx, kind)
		if err != nil {
			return err
		}
		for i := range pods {
			t.point("", fmt.Sprintf("%s is %s on %s", pods[i].Name, pods[i].Status.Phase, pods[i].Spec.NodeName))
		}
	}
	return nil
}

// warm waits until as many placeholders as there should be run.
func (t *tour) warm(ctx context.Context, kind string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	err := poll(ctx, func(ctx context.Context) error {
		all, err := t.placeholders(ctx, kind)
		if err != nil {
			return err
		}
		pods = nil
		for i := range all {
			if all[i].Status.Phase == corev1.PodRunning {
				pods = append(pods, all[i])
			}
		}
		if len(pods) != replicas {
			return fmt.Errorf("%d of %d placeholders of type %s are Running", len(pods), replicas, kind)
		}
		return nil
	})
	return pods, err
}

// placeholders are the pods of one type that are not being deleted.
func (t *tour) placeholders(ctx context.Context, kind string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := t.admin.List(ctx, &list, client.InNamespace(placeholderNamespace), client.MatchingLabels{"app": "spaces-placeholder", "type": kind})
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, list.Items[i])
		}
	}
	return pods, nil
}

// preemption lets the GPU Workspace run, for which no GPU is free, and then stop.
func (t *tour) preemption(ctx context.Context) error {
	t.say("Both GPUs are held by placeholders. Now the GPU Workspace of step 1 is really created:")
	before, err := t.warm(ctx, "gpu")
	if err != nil {
		return err
	}
	var workspace corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.sent[workspaceGPU].Object, &workspace); err != nil {
		return err
	}
	began := time.Now()
	if err := t.admin.Create(ctx, &workspace); err != nil {
		return err
	}
	t.line("", "")
	victim, err := t.evicted(ctx, before)
	if err != nil {
		return err
	}
	t.after(began, "placeholder %s is evicted", victim.Name)
	err = poll(ctx, func(ctx context.Context) error {
		if err := t.admin.Get(ctx, client.ObjectKeyFromObject(&workspace), &workspace); err != nil {
			return err
		}
		if workspace.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the Workspace is %s", workspace.Status.Phase)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if workspace.Spec.NodeName != victim.Spec.NodeName {
		return fmt.Errorf("the Workspace runs on %s, and the placeholder was evicted from %s", workspace.Spec.NodeName, victim.Spec.NodeName)
	}
	t.after(began, "the Workspace is Running in its place, on %s", workspace.Spec.NodeName)
	return t.refill(ctx, began, before, &workspace)
}

// evicted waits until one of the placeholders is gone.
func (t *tour) evicted(ctx context.Context, before []corev1.Pod) (victim *corev1.Pod, err error) {
	err = poll(ctx, func(ctx context.Context) error {
		now, err := t.placeholders(ctx, "gpu")
		if err != nil {
			return err
		}
		left := uids(now)
		for i := range before {
			if !left[before[i].UID] {
				victim = &before[i]
				return nil
			}
		}
		return fmt.Errorf("all %d GPU placeholders are still there", len(before))
	})
	return victim, err
}

// refill waits for the placeholder that comes after the evicted one: Pending while the Workspace has the GPU, Running then.
func (t *tour) refill(ctx context.Context, began time.Time, before []corev1.Pod, workspace *corev1.Pod) error {
	known := uids(before)
	err := poll(ctx, func(ctx context.Context) error {
		now, err := t.placeholders(ctx, "gpu")
		if err != nil {
			return err
		}
		for i := range now {
			for _, condition := range now[i].Status.Conditions {
				if !known[now[i].UID] && condition.Reason == corev1.PodReasonUnschedulable {
					t.after(began, "a new placeholder is Pending: for it Karpenter would start the next node")
					return nil
				}
			}
		}
		return fmt.Errorf("no new placeholder is Pending")
	})
	if err != nil {
		return err
	}
	stopped := time.Now()
	if err := t.admin.Delete(ctx, workspace); err != nil {
		return err
	}
	if _, err := t.warm(ctx, "gpu"); err != nil {
		return err
	}
	t.line("", "")
	t.say("Its user stops the Workspace. %.1f seconds later both placeholders are Running again. There are no kubelets"+
		" here, so no container starts and no image is pulled: only scheduling takes its real time.", time.Since(stopped).Seconds())
	return nil
}

func uids(pods []corev1.Pod) map[types.UID]bool {
	set := make(map[types.UID]bool, len(pods))
	for i := range pods {
		set[pods[i].UID] = true
	}
	return set
}

// after prints what has happened by now.
func (t *tour) after(began time.Time, format string, args ...any) {
	t.point(fmt.Sprintf("%5.2f s  ", time.Since(began).Seconds()), fmt.Sprintf(format, args...))
}
