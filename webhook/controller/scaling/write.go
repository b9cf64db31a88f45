package scaling

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager is the field manager of every write to a scale.
const FieldManager = "warmpool-scaling"

// scale sets the replicas of a Deployment that was read just now: a change that came between is not written over.
func (c *Controller) scale(ctx context.Context, d *appsv1.Deployment, replicas int) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": d.ResourceVersion},
		"spec":     map[string]any{"replicas": replicas},
	})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	target := &appsv1.Deployment{}
	target.Namespace, target.Name = d.Namespace, d.Name
	err = c.writer.SubResource("scale").Patch(ctx, target, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(FieldManager), client.WithSubResourceBody(&autoscalingv1.Scale{}))
	if err != nil {
		return fmt.Errorf("scale Deployment %s/%s to %d: %w", d.Namespace, d.Name, replicas, err)
	}
	return nil
}
