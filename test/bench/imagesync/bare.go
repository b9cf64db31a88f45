package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/storm"
	"warmpool.sh/webhook/prepull"
)

// Beside the pools' placeholders there are some that have opted out of image sync, for a plain client to patch.
func bareName(i int) string { return fmt.Sprintf("bare-%d", i) }

func (b *bench) furnishBare(ctx context.Context) error {
	for i := range b.Placeholders {
		d := b.Placeholder(0, 0)
		d.Name, d.Annotations = bareName(i), map[string]string{prepull.OptOut: "false"}
		if err := b.Admin.Create(ctx, d); err != nil {
			return fmt.Errorf("create %s: %w", d.Name, err)
		}
	}
	return nil
}

// patchBare patches as many placeholders as a pool has, at the same time, as image sync would.
func (b *bench) patchBare(ctx context.Context, version int) (time.Duration, error) {
	images := []string{storm.Image(0, 0, version)}
	began := time.Now()
	var group errgroup.Group
	for i := range b.Placeholders {
		group.Go(func() error {
			container := coreapply.Container().WithName(prepull.Name).WithImage(images[0])
			patch := appsapply.Deployment(bareName(i), storm.Namespace).WithAnnotations(map[string]string{prepull.SyncedAt: began.Format(time.RFC3339)}).
				WithSpec(appsapply.DeploymentSpec().WithTemplate(coreapply.PodTemplateSpec().WithSpec(coreapply.PodSpec().WithInitContainers(container))))
			return b.Admin.Apply(ctx, patch, client.FieldOwner("bench"), client.ForceOwnership)
		})
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("patch: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := b.watch.Until(limited, func(get func(string) *appsv1.Deployment) bool {
		for i := range b.Placeholders {
			if !storm.Pulls(get(bareName(i)), images) {
				return false
			}
		}
		return true
	})
	return time.Since(began), err
}
