package certs

import (
	"context"
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

// configurations reads our two webhook configurations from a cache.
type configurations struct {
	reader               client.Reader
	mutating, validating client.ObjectKey
}

// configuration is one of them. object is nil when it does not exist.
type configuration struct {
	kind, name string
	object     client.Object
}

// get returns both, the mutating one first.
func (c configurations) get(ctx context.Context) ([]configuration, error) {
	both := []configuration{
		{"MutatingWebhookConfiguration", c.mutating.Name, &admissionv1.MutatingWebhookConfiguration{}},
		{"ValidatingWebhookConfiguration", c.validating.Name, &admissionv1.ValidatingWebhookConfiguration{}},
	}
	for i := range both {
		err := c.reader.Get(ctx, client.ObjectKey{Name: both[i].name}, both[i].object)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil {
			both[i].object = nil
		}
	}
	return both, nil
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

// objects is a cache of its own: the manager's may hold other Secrets, and this
// one needs rights to three objects only.
type objects struct {
	cache.Cache
	informers []cache.Informer // of the webhook configurations
	forbidden atomic.Bool      // whether a list or watch was
}

// newObjects adds the cache to the manager. It holds the webhook configurations
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
	var err error
	o.Cache, err = cache.New(mgr.GetConfig(), cache.Options{
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
	for _, object := range []client.Object{mutating, validating} {
		informer, err := o.GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		o.informers = append(o.informers, informer)
	}
	return o, mgr.Add(o)
}

// NeedLeaderElection returns false. A cache with options by object does not say so
// itself, and would not start on replicas that do not lead.
func (o *objects) NeedLeaderElection() bool { return false }

// synced says whether the webhook configurations, if they exist, have been read.
func (o *objects) synced() bool {
	for _, informer := range o.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}
