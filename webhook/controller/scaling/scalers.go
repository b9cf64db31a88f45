package scaling

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/policy"
)

// truce is how long a pool is left alone after somebody else has set the replicas of one of its placeholders.
const truce = time.Hour

// cpaOf is the Cluster Proportional Autoscaler that scales one of the placeholders; empty: none.
func cpaOf(e *policy.Evaluator, p *placeholders) string {
	for _, scaler := range e.Facts().Deployments.All() {
		cpa := cluster.CPAOf(scaler)
		if cpa == nil || scaler.DeletionTimestamp != nil || int(policy.ReplicasOf(scaler)) == 0 {
			continue
		}
		for _, target := range cpa.Targets() {
			for _, d := range p.deployments {
				if target.Kind == "deployment" && target.Name == d.Name && (cpa.Namespace == "" || cpa.Namespace == d.Namespace) {
					return fmt.Sprintf("Deployment %s/%s is a Cluster Proportional Autoscaler that scales %s: remove it, or size from the pool", scaler.Namespace, scaler.Name, d.Name)
				}
			}
		}
	}
	return ""
}

// hpaOf is the HorizontalPodAutoscaler that scales one of the placeholders; empty: none, or they may not be listed.
func hpaOf(ctx context.Context, reader client.Reader, p *placeholders) (string, error) {
	var list autoscalingv2.HorizontalPodAutoscalerList
	err := reader.List(ctx, &list, client.InNamespace(p.deployments[0].Namespace))
	switch {
	case apierrors.IsForbidden(err): // whoever else writes is found all the same, an hour later each time
		return "", nil
	case err != nil:
		return "", fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	for i := range list.Items {
		for _, d := range p.deployments {
			if ref := list.Items[i].Spec.ScaleTargetRef; ref.Kind == "Deployment" && ref.Name == d.Name {
				return fmt.Sprintf("HorizontalPodAutoscaler %s/%s scales %s: remove it, or size from the pool", list.Items[i].Namespace, list.Items[i].Name, d.Name), nil
			}
		}
	}
	return "", nil
}

// owner is who set the replicas of a Deployment last, as its managed fields tell.
type owner struct {
	manager string
	at      time.Time
	ours    bool
}

// ownerOf finds the owner; of several the last. Its time is that of its last change of any of its fields.
func ownerOf(d *appsv1.Deployment) owner {
	var last owner
	for i := range d.ManagedFields {
		entry := &d.ManagedFields[i]
		if !ownsReplicas(entry) {
			continue
		}
		o := owner{manager: entry.Manager, ours: entry.Manager == FieldManager}
		if entry.Time != nil {
			o.at = entry.Time.Time
		}
		if o.ours || !last.ours && !o.at.Before(last.at) {
			last = o
		}
	}
	return last
}

func ownsReplicas(entry *metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, owns := fields.Spec["f:replicas"]
	return owns
}

// rival tells whether somebody else has set the replicas since the Deployment was made: until when it is left alone, and why. Who
// sets them to 0 has paused the placeholder, until they set another number. until is the zero time where there is none.
func rival(d *appsv1.Deployment, now time.Time, clock func(time.Time) time.Time) (until time.Time, why string) {
	o := ownerOf(d)
	made := d.CreationTimestamp.Time
	if o.manager == "" || o.ours || o.at.Sub(made) < time.Minute {
		return time.Time{}, ""
	}
	if int(policy.ReplicasOf(d)) == 0 {
		return now.Add(truce), fmt.Sprintf("%s has set the replicas of %s to 0, which pauses it; they are set again once they are another number", o.manager, d.Name)
	}
	until = clock(o.at).Add(truce)
	if !now.Before(until) || clock(o.at).After(now.Add(truce)) {
		return time.Time{}, ""
	}
	return until, fmt.Sprintf("%s has set the replicas of %s to %d at %s; they are left alone until %s", o.manager, d.Name, int(policy.ReplicasOf(d)),
		o.at.UTC().Format("15:04"), until.UTC().Format("15:04 MST"))
}
