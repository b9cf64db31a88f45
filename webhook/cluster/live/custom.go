package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"warmpool.sh/webhook/cluster"
)

// custom is a kind whose CRD may be absent, come, go, and change its version while warmpool runs.
type custom struct {
	*kind
	asked   bool               // discovery has answered
	version string             // that is watched; empty: none
	stop    context.CancelFunc // of the watch
	problem string             // the last one that was logged
}

// discover asks again and again which versions the cluster serves, until ctx ends. A watch on CRDs would tell sooner,
// but would need rights on all CRDs.
func (r *Reader) discover(ctx context.Context) {
	for {
		for _, c := range r.custom {
			r.discoverVersion(ctx, c)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.discoverInterval):
		}
	}
}

// discoverVersion makes the watched version the one that is served.
func (r *Reader) discoverVersion(ctx context.Context, c *custom) {
	version, err := served(r.discovery, c.Describe().GroupKind())
	if err != nil {
		r.complain(c, err) // and go on with what is known
		return
	}
	if c.asked && version == c.version {
		c.problem = ""
		return
	}
	if err := r.unwatch(ctx, c); err != nil {
		r.complain(c, err)
		return
	}
	if version == "" {
		reason := noCRD(c.Describe())
		r.log.Info(reason)
		c.reset(reason, true)
		c.asked, c.problem = true, ""
		return
	}
	watchCtx, stop := context.WithCancel(ctx)
	if err := r.watch(watchCtx, c.kind, c.object(version)); err != nil {
		stop()
		r.complain(c, err)
		return
	}
	r.log.Info("watching", "kind", c.name, "group", c.Describe().Group, "version", version)
	c.asked, c.version, c.stop, c.problem = true, version, stop, ""
}

func noCRD(of *cluster.Description) string {
	return fmt.Sprintf("no %s CRD (%s) in the cluster", of.Kind, of.Group)
}

func (r *Reader) unwatch(ctx context.Context, c *custom) error {
	if c.version == "" {
		return nil
	}
	if err := r.cache.RemoveInformer(ctx, c.object(c.version)); err != nil {
		return fmt.Errorf("remove informer: %w", err)
	}
	c.stop()
	c.asked, c.version, c.stop = false, "", nil
	return nil
}

// complain logs a problem when it is another one than last time.
func (r *Reader) complain(c *custom, err error) {
	if err.Error() != c.problem {
		c.problem = err.Error()
		r.log.Error(err, "cannot follow a kind, trying again", "kind", c.name, "group", c.Describe().Group)
	}
}

func (c *custom) object(version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(c.Describe().GroupKind().WithVersion(version))
	return object
}

// served returns the version of the kind that the cluster prefers; empty when it serves none.
func served(client discovery.DiscoveryInterface, kind schema.GroupKind) (string, error) {
	groups, err := client.ServerGroups()
	if err != nil {
		return "", fmt.Errorf("ask discovery for API groups: %w", err)
	}
	at := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == kind.Group })
	if at < 0 {
		return "", nil
	}
	group := groups.Groups[at]
	// The preferred version may lack the kind, which then has one of its own.
	for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
		resources, err := client.ServerResourcesForGroupVersion(version.GroupVersion)
		switch {
		case apierrors.IsNotFound(err):
			continue // it went away since
		case err != nil:
			return "", fmt.Errorf("ask discovery for %s: %w", version.GroupVersion, err)
		}
		if slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }) {
			return version.Version, nil
		}
	}
	return "", nil
}
