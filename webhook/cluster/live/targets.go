package live

import (
	"context"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// targets reads what warmpool's webhook configurations refer to: Services by name, and Certificates.
func (r *Reading) targets(ctx context.Context, s *cluster.Snapshot) {
	services, certificates := map[client.ObjectKey]bool{}, map[client.ObjectKey]bool{}
	refer := func(annotations map[string]string, to admissionregistrationv1.WebhookClientConfig) {
		if s := to.Service; s != nil {
			services[client.ObjectKey{Namespace: s.Namespace, Name: s.Name}] = true
		}
		if namespace, name, ok := strings.Cut(annotations["cert-manager.io/inject-ca-from"], "/"); ok && namespace != "" && name != "" {
			certificates[client.ObjectKey{Namespace: namespace, Name: name}] = true
		}
	}
	for _, c := range s.MutatingWebhooks.All() {
		for i := range c.Webhooks {
			refer(c.Annotations, c.Webhooks[i].ClientConfig)
		}
	}
	for _, c := range s.ValidatingWebhooks.All() {
		for i := range c.Webhooks {
			refer(c.Annotations, c.Webhooks[i].ClientConfig)
		}
	}
	r.get(ctx, s, cluster.Services, sortedKeys(services))
	r.get(ctx, s, cluster.Certificates, sortedKeys(certificates))
}
