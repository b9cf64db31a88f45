package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
	"warmpool.sh/webhook/cel"
)

// kind is what answers for the pods of a namespace.
type kind string

const (
	none      kind = "none"
	noop      kind = "noop"
	constant  kind = "constant"
	warmpool  kind = "warmpool"
	framework kind = "framework"
	exported  kind = "policy"
	both      kind = "both"
)

// baselines is the namespace of their Services; the certificate that they serve is for it.
const baselines = "baselines"

func (k kind) namespace() string { return "bench-" + string(k) }

// server is the name of the webhook's server; of none and of the policy there is none.
func (k kind) server() string {
	if k == both {
		return string(warmpool)
	}
	return string(k)
}

// variant is one way to create a pod.
type variant struct {
	kind kind
	// placed is a pod that has nothing left to change.
	placed bool
}

// The first of each is what the others add to.
var (
	variants       = []variant{{kind: none}, {kind: noop}, {kind: constant}, {kind: warmpool}, {kind: framework}, {kind: exported}, {kind: both}}
	placedVariants = []variant{{none, true}, {noop, true}, {warmpool, true}}
)

// String is the variant's row.
func (v variant) String() string {
	if v.placed {
		return "Placed/" + string(v.kind)
	}
	return "Creation/" + string(v.kind)
}

// places tells whether the pod that is created is a placed one.
func (v variant) places() bool { return v.placed || v.kind != none && v.kind != noop }

func (c *cluster) body(v variant) []byte {
	if v.placed {
		return c.placed
	}
	return c.bare
}

func (c *cluster) createNamespaces(ctx context.Context) error {
	errs := []error{c.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: baselines}})}
	for _, v := range variants {
		errs = append(errs, c.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.kind.namespace()}}))
	}
	return errors.Join(errs...)
}

// register has the API server ask each variant about the pods of its namespace, by the registration that warmpool ships:
// only namespaces and addresses differ.
func (c *cluster) register(ctx context.Context, shipped *admissionv1.MutatingWebhook) error {
	ca, err := os.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	if err != nil {
		return err
	}
	for _, k := range []kind{noop, constant, framework} {
		s, ok := c.server(k)
		if !ok {
			return fmt.Errorf("no server runs for %s", k)
		}
		registration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: string(k)}}
		entry := shipped.DeepCopy()
		entry.NamespaceSelector = only(k)
		// By a Service as warmpool: an API server asks Services over HTTP/1.1, and a URL of localhost over HTTP/2.
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: string(k), Namespace: baselines},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		}
		if err := c.admin.Create(ctx, service); err != nil {
			return err
		}
		entry.ClientConfig = admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: baselines, Name: string(k), Path: new(webhook.PodsPath), Port: new(int32(s.port))}, CABundle: ca,
		}
		registration.Webhooks = append(registration.Webhooks, *entry)
		if err := c.admin.Create(ctx, registration); err != nil {
			return err
		}
	}
	placement, err := cel.NewPlacement(c.evaluator, install.Namespace)
	if err != nil {
		return err
	}
	placement.Binding.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: only(exported, both)}
	return errors.Join(c.admin.Create(ctx, placement.Parameters), c.admin.Create(ctx, placement.Policy), c.admin.Create(ctx, placement.Binding))
}

// narrow keeps warmpool's webhook of pods to its own namespaces, and gives it as it was.
func (c *cluster) narrow(ctx context.Context) (*admissionv1.MutatingWebhook, error) {
	var shipped *admissionv1.MutatingWebhook
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var all admissionv1.MutatingWebhookConfiguration
		if err := c.admin.Get(ctx, client.ObjectKey{Name: "warmpool-pods"}, &all); err != nil {
			return err
		}
		for i := range all.Webhooks {
			w := &all.Webhooks[i]
			if w.ClientConfig.Service != nil && w.ClientConfig.Service.Path != nil && *w.ClientConfig.Service.Path == webhook.PodsPath {
				shipped = w.DeepCopy()
				w.NamespaceSelector = only(warmpool, both)
			}
		}
		return c.admin.Update(ctx, &all)
	})
	if err == nil && shipped == nil {
		err = fmt.Errorf("the shipped configuration has no webhook for %s", webhook.PodsPath)
	}
	return shipped, err
}

func only(kinds ...kind) *metav1.LabelSelector {
	in := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn}
	for _, k := range kinds {
		in.Values = append(in.Values, k.namespace())
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in}}
}
