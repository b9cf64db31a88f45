package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// fieldManager owns caBundle of the webhook configurations and nothing else.
const fieldManager = "warmpool-cabundle"

// caBundle keeps a valid CA in the Secret, and caBundle of the webhook configurations equal to it.
type caBundle struct {
	registrations []registration
	secrets       client.Reader
	secret        types.NamespacedName
	writer        client.Client
	embedded      *embedded // what signs by the CA that all webhook configurations have been seen to hold
}

// addCABundle adds the reconciler to the manager.
func (c *Certs) addCABundle(mgr manager.Manager) error {
	r := &caBundle{
		registrations: c.registrations(),
		secrets:       c.objects.placeholders,
		secret:        types.NamespacedName{Namespace: c.opts.Namespace, Name: c.opts.SecretName},
		writer:        mgr.GetClient(),
		embedded:      c.embedded,
	}
	log := mgr.GetLogger().WithName("certs")
	// One key for all objects: bursts coalesce and writes do not overlap.
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.secret}}
	})
	return builder.ControllerManagedBy(mgr).
		Named("ca-bundle").
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		WithLogConstructor(func(*reconcile.Request) logr.Logger { return log }).
		WatchesRawSource(source.Kind[client.Object](c.objects.placeholders, &corev1.Secret{}, enqueue)).
		WatchesRawSource(source.Kind[client.Object](c.objects.placeholders, &admissionv1.MutatingWebhookConfiguration{}, enqueue)).
		WatchesRawSource(source.Kind[client.Object](c.objects.placeholders, &admissionv1.ValidatingWebhookConfiguration{}, enqueue)).
		WatchesRawSource(source.Kind[client.Object](c.objects.pods, &admissionv1.MutatingWebhookConfiguration{}, enqueue)).
		Complete(r)
}

// Reconcile makes a CA where there is none that can be used, or it is old, and writes caBundle where it differs. What is
// written comes back here, and to the other replicas, by the watches.
func (r *caBundle) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := r.secrets.Get(ctx, r.secret, &secret); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	now := time.Now()
	ca := caOf(&secret, r.embedded.names, now)
	var failure error
	if ca == nil || now.After(renewalAt(ca.Leaf)) {
		failure = r.unlessFaster(ctx, r.replaceCA(ctx, &secret, now))
	}
	if ca == nil {
		return reconcile.Result{}, failure
	}
	if err := r.trust(ctx, ca, now); err != nil || failure != nil {
		return reconcile.Result{}, errors.Join(r.unlessFaster(ctx, err), failure)
	}
	return reconcile.Result{RequeueAfter: time.Hour}, nil // soon enough to renew the CA, and to drop one that has expired
}

// trust writes caBundle, and then has certificates signed by this CA.
func (r *caBundle) trust(ctx context.Context, ca *tls.Certificate, now time.Time) error {
	configurations, err := r.existing(ctx)
	if err != nil {
		return err
	}
	cas := trustedCAs(ca.Leaf, presentBundles(configurations), now)
	if err := r.write(ctx, configurations, encodeCertificates(cas)); err != nil {
		return err
	}
	if r.embedded.trust(ca, now) {
		log.FromContext(ctx).Info("CA changed", "kind", "Secret", "namespace", r.secret.Namespace, "name", r.secret.Name)
	}
	return nil
}

// unlessFaster returns nil where err says that another replica was faster.
func (r *caBundle) unlessFaster(ctx context.Context, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		log.FromContext(ctx).V(1).Info("Changed meanwhile by another replica", "reason", err.Error())
		return nil
	}
	return err
}

// replaceCA writes a new CA into the Secret, which need not exist.
func (r *caBundle) replaceCA(ctx context.Context, secret *corev1.Secret, now time.Time) error {
	ca, err := newCA(r.secret.Name, r.embedded.names, now)
	if err != nil {
		return err
	}
	if secret.Data, err = secretData(ca); err != nil {
		return err
	}
	if secret.ResourceVersion == "" {
		secret.Namespace, secret.Name = r.secret.Namespace, r.secret.Name
		err = r.writer.Create(ctx, secret)
	} else {
		err = r.writer.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write the CA into Secret %s: %w", r.secret, err)
	}
	log.FromContext(ctx).Info("Made a CA", "kind", "Secret", "namespace", r.secret.Namespace, "name", r.secret.Name)
	return nil
}

// existing returns those of the webhook configurations that exist. One that does
// not exist calls no one, and so needs to trust no one.
func (r *caBundle) existing(ctx context.Context) ([]client.Object, error) {
	all, err := read(ctx, r.registrations)
	if err != nil {
		return nil, err
	}
	var found []client.Object
	for _, configuration := range all {
		if configuration.object != nil {
			found = append(found, configuration.object)
		}
	}
	return found, nil
}

// write patches each configuration that holds another bundle. It goes on after an
// error, and returns a conflict only when that is all that went wrong.
func (r *caBundle) write(ctx context.Context, configurations []client.Object, bundle []byte) error {
	var failures []error
	var conflict error
	for _, configuration := range configurations {
		operations := bundlePatch(configuration, bundle)
		if len(operations) == 0 {
			continue
		}
		err := r.patch(ctx, configuration, operations)
		if apierrors.IsConflict(err) {
			conflict = err
		} else if err != nil {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	return conflict
}

func (r *caBundle) patch(ctx context.Context, configuration client.Object, operations []jsonpatch.Operation) error {
	gvk, err := r.writer.GroupVersionKindFor(configuration)
	if err != nil {
		return err
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	name := configuration.GetName()
	patch := client.RawPatch(types.JSONPatchType, body)
	if err := r.writer.Patch(ctx, configuration, patch, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("writing caBundle of %s %s: %w", gvk.Kind, name, err)
	}
	log.FromContext(ctx).Info("Wrote caBundle", "kind", gvk.Kind, "name", name)
	return nil
}

// bundlePatch returns the operations that set caBundle where it differs; none
// when it is right everywhere. The resource version makes the API server refuse
// a patch whose indexes were read from another version.
func bundlePatch(configuration client.Object, bundle []byte) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for i, webhook := range clientConfigs(configuration) {
		if !bytes.Equal(webhook.CABundle, bundle) {
			path := fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i)
			operations = append(operations, jsonpatch.NewOperation("add", path, bundle))
		}
	}
	if len(operations) == 0 {
		return nil
	}
	version := jsonpatch.NewOperation("replace", "/metadata/resourceVersion", configuration.GetResourceVersion())
	return append([]jsonpatch.Operation{version}, operations...)
}

func presentBundles(configurations []client.Object) []byte {
	var present []byte
	for _, configuration := range configurations {
		for _, webhook := range clientConfigs(configuration) {
			present = append(append(present, webhook.CABundle...), '\n')
		}
	}
	return present
}
