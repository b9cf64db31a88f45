package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
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

// caBundle keeps caBundle of the webhook configurations equal to the CA in the Secret.
type caBundle struct {
	registrations []registration
	secrets       client.Reader
	secret        types.NamespacedName
	writer        client.Client

	// trusted is the CA that all webhook configurations have been seen to hold.
	trusted atomic.Pointer[x509.Certificate]
}

// addCABundle adds the reconciler to the manager. The pointer returned holds the
// CA that caBundle trusts; nil until then.
func addCABundle(mgr manager.Manager, registrations []registration, opts Options, objects *objects, log logr.Logger) (*atomic.Pointer[x509.Certificate], error) {
	r := &caBundle{
		registrations: registrations,
		secrets:       objects.placeholders,
		secret:        types.NamespacedName{Namespace: opts.Namespace, Name: opts.SecretName},
		writer:        mgr.GetClient(),
	}
	// One key for all objects: bursts coalesce and writes do not overlap.
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.secret}}
	})
	return &r.trusted, builder.ControllerManagedBy(mgr).
		Named("ca-bundle").
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		WithLogConstructor(func(*reconcile.Request) logr.Logger { return log }).
		WatchesRawSource(source.Kind[client.Object](objects.placeholders, &corev1.Secret{}, enqueue)).
		WatchesRawSource(source.Kind[client.Object](objects.placeholders, &admissionv1.MutatingWebhookConfiguration{}, enqueue)).
		WatchesRawSource(source.Kind[client.Object](objects.placeholders, &admissionv1.ValidatingWebhookConfiguration{}, enqueue)).
		WatchesRawSource(source.Kind[client.Object](objects.pods, &admissionv1.MutatingWebhookConfiguration{}, enqueue)).
		Complete(r)
}

// Reconcile writes caBundle where it differs. Without a valid CA it does nothing:
// the authority makes one, and the watch on its Secret comes back here.
func (r *caBundle) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := r.secrets.Get(ctx, r.secret, &secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := time.Now()
	ca := caOf(&secret, now)
	if ca == nil {
		return reconcile.Result{}, nil
	}
	configurations, err := r.existing(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	cas := trustedCAs(ca, presentBundles(configurations), now)
	if err := r.write(ctx, configurations, encodeCertificates(cas)); err != nil {
		if apierrors.IsConflict(err) {
			// Another replica was faster; the watch brings its version here.
			log.FromContext(ctx).V(1).Info("Webhook configuration changed meanwhile")
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if before := r.trusted.Swap(ca); !ca.Equal(before) {
		log.FromContext(ctx).Info("CA changed", "kind", "Secret", "namespace", r.secret.Namespace, "name", r.secret.Name)
	}
	// Come back to drop the first CA that expires.
	expiry := cas[len(cas)-1].NotAfter
	return reconcile.Result{RequeueAfter: max(expiry.Sub(now), 0) + time.Second}, nil
}

// existing returns those of the webhook configurations that exist. One that does
// not exist calls nobody, and so needs to trust nobody.
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
