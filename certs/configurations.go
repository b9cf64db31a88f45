package certs

import (
	"context"
	"errors"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

// registration is one of our webhook configurations, and the cache that it is read from.
type registration struct {
	reader     client.Reader
	kind, name string
	// optional ones need neither exist nor be trusted for warmpool to be ready.
	optional bool
}

// configuration is what there is of it. object is nil when it does not exist.
type configuration struct {
	registration
	object client.Object
}

// read returns all of them, in their order.
func read(ctx context.Context, registrations []registration) ([]configuration, error) {
	all := make([]configuration, 0, len(registrations))
	for _, r := range registrations {
		c := configuration{registration: r, object: &admissionv1.MutatingWebhookConfiguration{}}
		if r.kind == validatingKind {
			c.object = &admissionv1.ValidatingWebhookConfiguration{}
		}
		err := r.reader.Get(ctx, client.ObjectKey{Name: r.name}, c.object)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil {
			c.object = nil
		}
		all = append(all, c)
	}
	return all, nil
}

// clientConfigs returns how the API server reaches each webhook of a configuration.
func clientConfigs(configuration client.Object) []admissionv1.WebhookClientConfig {
	var configs []admissionv1.WebhookClientConfig
	switch c := configuration.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			configs = append(configs, c.Webhooks[i].ClientConfig)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			configs = append(configs, c.Webhooks[i].ClientConfig)
		}
	}
	return configs
}

// objects are caches of their own: the manager's may hold other Secrets, and these
// need rights to four objects only. They are two, because a cache selects one
// object of a kind by its name.
type objects struct {
	placeholders, pods cache.Cache
	informers          []cache.Informer // of the webhook configurations
	forbidden          atomic.Bool      // whether a list or watch was
}

// newObjects adds the caches to the manager. They hold the webhook configurations
// and, in ModeEmbedded, the Secret.
func newObjects(mgr manager.Manager, opts Options) (*objects, error) {
	o := &objects{}
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	byObject := map[client.Object]cache.ByObject{
		mutating:   {Field: named(opts.MutatingConfiguration)},
		validating: {Field: named(opts.ValidatingConfiguration)},
	}
	if opts.Mode == ModeEmbedded {
		byObject[&corev1.Secret{}] = cache.ByObject{Namespaces: map[string]cache.Config{
			opts.Namespace: {FieldSelector: named(opts.SecretName)},
		}}
	}
	var placeholders, pods error
	o.placeholders, placeholders = o.watch(mgr, byObject, mutating, validating)
	o.pods, pods = o.watch(mgr, map[client.Object]cache.ByObject{mutating: {Field: named(opts.PodsConfiguration)}}, mutating)
	return o, errors.Join(placeholders, pods)
}

// watch makes one of the caches. The configurations are those among its objects.
func (o *objects) watch(mgr manager.Manager, byObject map[client.Object]cache.ByObject, configurations ...client.Object) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		ByObject:   byObject,
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) {
				o.forbidden.Store(true)
			}
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		},
	})
	if err != nil {
		return nil, err
	}
	for _, object := range configurations {
		informer, err := c.GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		o.informers = append(o.informers, informer)
	}
	return c, mgr.Add(everywhere{c})
}

// everywhere is a cache that every replica needs. A cache with options by object
// does not say so itself, and would not start on replicas that do not lead.
type everywhere struct{ cache.Cache }

// NeedLeaderElection returns false.
func (everywhere) NeedLeaderElection() bool { return false }

// synced says whether the webhook configurations, if they exist, have been read.
func (o *objects) synced() bool {
	for _, informer := range o.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}
