package day_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"warmpool.sh/test/harness/simulation"
)

// replay is a day on a cluster.
type replay struct {
	*simulation.Cluster

	variant variant
	// faster is how much shorter the day is here.
	faster float64
	began  time.Time

	mu sync.Mutex
	// changed and synced are when a template's image changed, and when all of its placeholders had it, by kind.
	changed, synced map[string]time.Time
}

func newReplay(t *testing.T, v variant, of length) *replay {
	t.Helper()
	return &replay{Cluster: v.open(t, of.delays), variant: v, faster: float64(workday) / float64(of.time)}
}

// run returns when the day is over and all of its Workspaces have run.
func (r *replay) run(ctx context.Context, day []arrival, of images) error {
	r.began, r.changed, r.synced = time.Now(), map[string]time.Time{}, map[string]time.Time{}
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range day {
		group.Go(func() error { return r.visit(ctx, a) })
	}
	for kind, image := range of.after {
		group.Go(func() error { return r.renew(ctx, kind, image) })
	}
	group.Go(func() error { return r.until(ctx, workday) })
	return group.Wait()
}

// told is how long a Workspace runs at least: warmpool looks at each 2 s after its start.
const told = 5 * time.Second

// visit is a Workspace from its start to its end.
func (r *replay) visit(ctx context.Context, a arrival) error {
	if err := r.until(ctx, a.at); err != nil {
		return err
	}
	if err := r.Create(ctx, a.Workspace); err != nil {
		return err
	}
	starts, err := r.WaitRunning(ctx, limit, a.Name)
	if err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(starts[0].Running.Add(max(r.short(a.stays), told)))); err != nil {
		return err
	}
	return r.Delete(ctx, a.Name)
}

// renew changes a template, and follows its placeholders until they have pulled the image.
func (r *replay) renew(ctx context.Context, kind, image string) error {
	if err := r.until(ctx, noon); err != nil {
		return err
	}
	if err := r.SetTemplate(ctx, kind, image); err != nil {
		return err
	}
	r.mu.Lock()
	r.changed[kind] = time.Now()
	r.mu.Unlock()
	if !r.variant.placeholders() {
		return nil
	}
	if r.variant.byHand() {
		if err := r.until(ctx, fixed); err != nil {
			return err
		}
		if err := r.setPlaceholder(ctx, kind, image); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(limit); !r.Book.Synced(kind, image); {
		if time.Now().After(deadline) {
			return fmt.Errorf("the placeholders of %s have not all pulled %s after %s", kind, image, limit)
		}
		if err := sleep(ctx, step); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced[kind] = time.Now()
	return nil
}

// setPlaceholder is kubectl set image.
func (r *replay) setPlaceholder(ctx context.Context, kind, image string) error {
	_, _, err := r.Kubectl(ctx, "", "set", "image", "-n", simulation.Placeholders, "deployment/spaces-placeholder-"+kind, "pull-workspace-image="+image)
	return err
}

// short is a time of the day as it is here.
func (r *replay) short(d time.Duration) time.Duration { return time.Duration(float64(d) / r.faster) }

// until waits for a time of the day.
func (r *replay) until(ctx context.Context, at time.Duration) error {
	return sleep(ctx, time.Until(r.began.Add(r.short(at))))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), context.Cause(ctx))
	case <-time.After(d):
		return nil
	}
}
