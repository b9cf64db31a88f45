package live

import (
	"context"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// targets reads what warmpool's webhook configurations refer to: Services by name, and Certificates.
func (r *Reading) targets(ctx context.Context, around *cluster.Around) {
	services, certificates := map[client.ObjectKey]bool{}, map[client.ObjectKey]bool{}
	refer := func(annotations map[string]string, to admissionregistrationv1.WebhookClientConfig) {
		if s := to.Service; s != nil {
			services[client.ObjectKey{Namespace: s.Namespace, Name: s.Name}] = true
		}
		if namespace, name, ok := strings.Cut(annotations["cert-manager.io/inject-ca-from"], "/"); ok && namespace != "" && name != "" {
			certificates[client.ObjectKey{Namespace: namespace, Name: name}] = true
		}
	}
	for _, c := range around.MutatingWebhooks.All() {
		for i := range c.Webhooks {
			refer(c.Annotations, c.Webhooks[i].ClientConfig)
		}
	}
	for _, c := range around.ValidatingWebhooks.All() {
		for i := range c.Webhooks {
			refer(c.Annotations, c.Webhooks[i].ClientConfig)
		}
	}
	around.Services = get[corev1.Service](ctx, r, sortedKeys(services))
	around.Certificates = r.certificates(ctx, sortedKeys(certificates))
}

// certificates reads those of cert-manager; a cluster without it has none.
func (r *Reading) certificates(ctx context.Context, keys []client.ObjectKey) cluster.Facts[cluster.Certificate] {
	found := map[string]*cluster.Certificate{}
	for _, key := range keys {
		object, err := r.custom(ctx, cluster.CertificateGroupKind, key)
		switch {
		case err != nil:
			return cluster.Unknown[cluster.Certificate](r.note("get", cluster.CertificateGroupKind.String()+" "+key.Name, key.Namespace, err))
		case object != nil:
			found[keyOf(key)] = &cluster.Certificate{Namespace: key.Namespace, Name: key.Name}
		}
	}
	return cluster.Known(found)
}
