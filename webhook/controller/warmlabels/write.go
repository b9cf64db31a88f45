package warmlabels

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager is the field manager of every write.
const FieldManager = "warmpool-warmth"

// echo is how long a write may take to come back by the watch. Then the pod is judged as it is seen.
const echo = 5 * time.Second

// rest is how long a pod keeps its labels and cost before its cost alone is written again: Workspaces come and go.
const rest = 10 * time.Second

// written is the last write to a pod.
type written struct {
	uid     types.UID
	version string
	at      time.Time
}

// wait is how long a change is to wait.
func (w written) wait(pod *corev1.Pod, what change, now time.Time) time.Duration {
	after := w.behind(pod, now)
	if w.uid == pod.UID && len(what.labels) == 0 {
		after = max(after, w.at.Add(rest).Sub(now))
	}
	return after
}

// behind is how long to wait for the watch to bring a pod as it was written; else it would be written again.
func (w written) behind(pod *corev1.Pod, now time.Time) time.Duration {
	if w.uid != pod.UID {
		return 0
	}
	if order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, w.version); err != nil || order >= 0 {
		return 0
	}
	return max(0, w.at.Add(echo).Sub(now))
}

// write patches labels, the deletion cost and nothing else. A merge patch takes labels away whoever has set them, as server-side apply would
// not. The uid makes sure that it is still the same pod. There is no resourceVersion: kubelets write the status all the
// time, most of it makes no difference here, and what does brings another look.
func (c *Controller) write(ctx context.Context, pod *corev1.Pod, what change) (written, error) {
	metadata := map[string]any{"uid": pod.UID}
	if len(what.labels) > 0 {
		metadata["labels"] = what.labels
	}
	if what.cost != nil {
		value := what.cost
		if *value == "" {
			value = nil // the annotation goes
		}
		metadata["annotations"] = map[string]*string{corev1.PodDeletionCost: value}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return written{}, fmt.Errorf("encode the patch: %w", err)
	}
	answer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := c.writer.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return written{}, err
	}
	return written{uid: pod.UID, version: answer.ResourceVersion, at: c.now()}, nil
}

// gone reports that the pod that was looked at does not exist any more.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
