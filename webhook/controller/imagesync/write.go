package imagesync

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"warmpool.sh/webhook/prepull"
)

// FieldManager is the field manager of every write, so that others can ignore what it owns.
const FieldManager = "warmpool-image-sync"

// write brings the images of the step, and the record of them, into the Deployment in one request, so that there is one
// rollout. The uid makes sure that it is still the one that was looked at. generation is that of the Deployment then.
func (c *Controller) write(ctx context.Context, d *appsv1.Deployment, s step) (generation int64, err error) {
	annotations := prepull.NewRecord(s.goal.sources, s.goal.record).Annotations()
	annotations[prepull.SyncedAt] = c.now().UTC().Format(time.RFC3339)
	for _, change := range s.goal.changes {
		if change.Added || change.Gone {
			patch, err := mergePatch(d, annotations, s.goal.changes)
			if err != nil {
				return 0, fmt.Errorf("encode the patch: %w", err)
			}
			written := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
			err = c.writer.Patch(ctx, written, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(FieldManager))
			return written.Generation, err
		}
	}
	written := applyPatch(d, annotations, s.goal.images)
	err = c.writer.Apply(ctx, written, client.FieldOwner(FieldManager), client.ForceOwnership)
	return ptr.Deref(written.Generation, 0), err
}

// applyPatch owns the images alone, and the annotations. It cannot remove what others own too, nor add a container
// without owning all of that.
func applyPatch(d *appsv1.Deployment, annotations map[string]string, images []string) *appsapply.DeploymentApplyConfiguration {
	spec := coreapply.PodSpec()
	for i, image := range images {
		spec.WithInitContainers(coreapply.Container().WithName(prepull.ContainerName(i)).WithImage(image))
	}
	return appsapply.Deployment(d.Name, d.Namespace).WithUID(d.UID).WithAnnotations(annotations).
		WithSpec(appsapply.DeploymentSpec().WithTemplate(coreapply.PodTemplateSpec().WithSpec(spec)))
}

// mergePatch sets images, adds containers and removes others by their names. Without the order of all of them the API server
// would put new ones first.
func mergePatch(d *appsv1.Deployment, annotations map[string]string, changes []prepull.Change) ([]byte, error) {
	var containers []any
	for _, change := range changes {
		switch {
		case change.Gone:
			containers = append(containers, map[string]any{"$patch": "delete", "name": change.Container.Name})
		case change.Added:
			containers = append(containers, change.Container)
		default:
			containers = append(containers, map[string]any{"name": change.Container.Name, "image": change.Container.Image})
		}
	}
	var order []any
	for _, container := range prepull.Apply(d.Spec.Template.Spec.InitContainers, changes) {
		order = append(order, map[string]any{"name": container.Name})
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": d.UID, "annotations": annotations},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"initContainers": containers, "$setElementOrder/initContainers": order}}},
	})
}

// refused reports whether the API server will say no again as long as nothing changes.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// unanswered reports whether the API server could not ask warmpool's own webhook. After an installation that is so until a
// replica is ready and the API server knows of it; which replica serves has nothing to do with which one leads.
func unanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), `failed calling webhook "placeholders.warmpool.sh"`)
}

// stale reports whether the Deployment is no longer the one that was looked at. The watch will show it, unless all that others
// wrote meanwhile makes no difference to warmpool.
func stale(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// otherManagers names who else has written the images of the Deployment, as the end of a sentence.
func (c *Controller) otherManagers(ctx context.Context, d *appsv1.Deployment) string {
	var live appsv1.Deployment
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(d), &live); err != nil {
		return fmt.Sprintf(" (who it is could not be read: %v)", err)
	}
	found := map[string]bool{}
	for _, entry := range live.ManagedFields {
		if entry.Manager != FieldManager && entry.FieldsV1 != nil && ownsAnImage(entry.FieldsV1.GetRawBytes()) {
			found[entry.Manager] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("; field manager: %s", strings.Join(slices.Sorted(maps.Keys(found)), ", "))
}

func ownsAnImage(fields []byte) bool {
	var set fieldpath.Set
	if err := set.FromJSON(bytes.NewReader(fields)); err != nil {
		return false
	}
	owns := false
	set.Iterate(func(path fieldpath.Path) {
		text := path.String()
		owns = owns || strings.HasPrefix(text, ".spec.template.spec.initContainers[name=\""+prepull.Name) && strings.HasSuffix(text, ".image")
	})
	return owns
}
