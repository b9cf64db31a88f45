package manifests_test

import (
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objects are what a kustomization renders to. Each check tells which names in it lead nowhere.
type objects []client.Object

func of[T client.Object](all objects) []T {
	var found []T
	for _, object := range all {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// exists checks that there is an object of the type with this name.
func exists[T client.Object](t *testing.T, all objects, namespace, name, who string) {
	t.Helper()
	assert.True(t, slices.ContainsFunc(of[T](all), func(o T) bool { return o.GetNamespace() == namespace && o.GetName() == name }),
		"%s names %T %s/%s, which is not there", who, *new(T), namespace, name)
}

// selected are the Deployments of the namespace whose pods a selector selects.
func (all objects) selected(t *testing.T, namespace string, selector *metav1.LabelSelector) []*appsv1.Deployment {
	t.Helper()
	matches, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	var found []*appsv1.Deployment
	for _, d := range of[*appsv1.Deployment](all) {
		if d.Namespace == namespace && matches.Matches(labels.Set(d.Spec.Template.Labels)) {
			found = append(found, d)
		}
	}
	return found
}

func (all objects) namespaces(t *testing.T) {
	t.Helper()
	for _, object := range all {
		if object.GetNamespace() != "" {
			exists[*corev1.Namespace](t, all, "", object.GetNamespace(), object.GetName())
		}
	}
}

func (all objects) rights(t *testing.T) {
	t.Helper()
	for _, b := range of[*rbacv1.ClusterRoleBinding](all) {
		exists[*rbacv1.ClusterRole](t, all, "", b.RoleRef.Name, b.Name)
		all.subjects(t, b.Name, b.Subjects)
	}
	for _, b := range of[*rbacv1.RoleBinding](all) {
		if b.RoleRef.Kind == "Role" {
			exists[*rbacv1.Role](t, all, b.Namespace, b.RoleRef.Name, b.Name)
		} else {
			exists[*rbacv1.ClusterRole](t, all, "", b.RoleRef.Name, b.Name)
		}
		all.subjects(t, b.Name, b.Subjects)
	}
	for _, r := range of[*rbacv1.ClusterRole](all) {
		noStars(t, r.Name, r.Rules)
	}
	for _, r := range of[*rbacv1.Role](all) {
		noStars(t, r.Name, r.Rules)
	}
}

func (all objects) subjects(t *testing.T, who string, subjects []rbacv1.Subject) {
	t.Helper()
	assert.NotEmpty(t, subjects, who)
	for _, subject := range subjects {
		assert.Equal(t, rbacv1.ServiceAccountKind, subject.Kind, who)
		exists[*corev1.ServiceAccount](t, all, subject.Namespace, subject.Name, who)
	}
}

func noStars(t *testing.T, who string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, rule := range rules {
		assert.NotContains(t, slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*", who)
	}
}

// pods have what they mount and run as.
func (all objects) pods(t *testing.T) {
	t.Helper()
	for _, d := range of[*appsv1.Deployment](all) {
		spec := &d.Spec.Template.Spec
		assert.Equal(t, []*appsv1.Deployment{d}, all.selected(t, d.Namespace, d.Spec.Selector), "the selector of %s", d.Name)
		if spec.ServiceAccountName != "" {
			exists[*corev1.ServiceAccount](t, all, d.Namespace, spec.ServiceAccountName, d.Name)
		}
		if !strings.HasPrefix(spec.PriorityClassName, "system-") {
			exists[*schedulingv1.PriorityClass](t, all, "", spec.PriorityClassName, d.Name)
		}
		for _, volume := range spec.Volumes {
			switch {
			case volume.ConfigMap != nil:
				exists[*corev1.ConfigMap](t, all, d.Namespace, volume.ConfigMap.Name, d.Name)
			case volume.Secret != nil:
				assert.True(t, slices.ContainsFunc(of[*certmanagerv1.Certificate](all), func(c *certmanagerv1.Certificate) bool {
					return c.Namespace == d.Namespace && c.Spec.SecretName == volume.Secret.SecretName
				}), "no Certificate writes Secret %s of %s", volume.Secret.SecretName, d.Name)
			}
		}
	}
}

func (all objects) services(t *testing.T) {
	t.Helper()
	for _, s := range of[*corev1.Service](all) {
		selected := all.selected(t, s.Namespace, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		require.Len(t, selected, 1, s.Name)
		for _, port := range s.Spec.Ports {
			assert.True(t, hasPort(selected[0], port.TargetPort), "Service %s: %s has no port %s", s.Name, selected[0].Name, &port.TargetPort)
		}
	}
	for _, object := range of[*unstructured.Unstructured](all) {
		if object.GetKind() == "ServiceMonitor" {
			all.monitor(t, object)
		}
	}
}

// monitor checks that a ServiceMonitor finds one Service and its ports.
func (all objects) monitor(t *testing.T, monitor *unstructured.Unstructured) {
	t.Helper()
	wanted, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	require.NoError(t, err)
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	require.NoError(t, err)
	require.NotEmpty(t, endpoints)
	found := slices.DeleteFunc(of[*corev1.Service](all), func(s *corev1.Service) bool {
		return s.Namespace != monitor.GetNamespace() || !labels.SelectorFromSet(wanted).Matches(labels.Set(s.Labels))
	})
	require.Len(t, found, 1)
	for _, endpoint := range endpoints {
		fields, ok := endpoint.(map[string]any)
		require.True(t, ok)
		assert.True(t, slices.ContainsFunc(found[0].Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == fields["port"] }), "port %s", fields["port"])
	}
}

func hasPort(d *appsv1.Deployment, port intstr.IntOrString) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == port.StrVal && port.Type == intstr.String || p.ContainerPort == port.IntVal && port.Type == intstr.Int
		})
	})
}

// webhooks lead to a Service that is there, and leave kube-system and warmpool's own namespace alone.
func (all objects) webhooks(t *testing.T) {
	t.Helper()
	found := 0
	check := func(o client.Object, clientConfig admissionv1.WebhookClientConfig, namespaces *metav1.LabelSelector) {
		found++
		service := clientConfig.Service
		require.NotNil(t, service)
		exists[*corev1.Service](t, all, service.Namespace, service.Name, o.GetName())
		for _, s := range of[*corev1.Service](all) {
			if s.Namespace == service.Namespace && s.Name == service.Name {
				assert.Equal(t, *service.Port, s.Spec.Ports[0].Port)
			}
		}
		selector, err := metav1.LabelSelectorAsSelector(namespaces)
		require.NoError(t, err)
		for namespace, want := range map[string]bool{"kube-system": false, service.Namespace: false, "team-a": true} {
			assert.Equal(t, want, selector.Matches(labels.Set{corev1.LabelMetadataName: namespace}), namespace)
		}
		all.certificate(t, o, service.Name+"."+service.Namespace+".svc")
	}
	for _, c := range of[*admissionv1.MutatingWebhookConfiguration](all) {
		for i := range c.Webhooks {
			check(c, c.Webhooks[i].ClientConfig, c.Webhooks[i].NamespaceSelector)
		}
	}
	for _, c := range of[*admissionv1.ValidatingWebhookConfiguration](all) {
		for i := range c.Webhooks {
			check(c, c.Webhooks[i].ClientConfig, c.Webhooks[i].NamespaceSelector)
		}
	}
	want := 3
	if len(of[*admissionv1.MutatingAdmissionPolicy](all)) > 0 {
		want = 2 // that policy places pods
	}
	assert.Equal(t, want, found)
}

// certificate checks that what cainjector is to inject is a Certificate that is there, for the name that is called.
func (all objects) certificate(t *testing.T, configuration client.Object, host string) {
	t.Helper()
	from, ok := configuration.GetAnnotations()["cert-manager.io/inject-ca-from"]
	if !ok {
		assert.Empty(t, of[*certmanagerv1.Certificate](all))
		return
	}
	namespace, name, _ := strings.Cut(from, "/")
	exists[*certmanagerv1.Certificate](t, all, namespace, name, configuration.GetName())
	for _, c := range of[*certmanagerv1.Certificate](all) {
		exists[*certmanagerv1.Issuer](t, all, c.Namespace, c.Spec.IssuerRef.Name, c.Name)
		if c.Name == name {
			assert.Contains(t, c.Spec.DNSNames, host)
		}
	}
}

// selectors of budgets and network policies select a Deployment, and have ports that it has.
func (all objects) selectors(t *testing.T) {
	t.Helper()
	for _, b := range of[*policyv1.PodDisruptionBudget](all) {
		require.Len(t, all.selected(t, b.Namespace, b.Spec.Selector), 1, b.Name)
	}
	for _, p := range of[*networkingv1.NetworkPolicy](all) {
		selected := all.selected(t, p.Namespace, &p.Spec.PodSelector)
		require.NotEmpty(t, selected, p.Name)
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				assert.True(t, hasPort(selected[0], *port.Port), "%s: %s has no port %s", p.Name, selected[0].Name, port.Port)
			}
		}
	}
}

// fences keep everybody from the port of probes, most from that of metrics, and placeholders, not CPA, from everybody.
func (all objects) fences(t *testing.T) {
	t.Helper()
	var silent []string
	for _, p := range of[*networkingv1.NetworkPolicy](all) {
		if p.Name == "placeholders" {
			assert.ElementsMatch(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, p.Spec.PolicyTypes)
			assert.Empty(t, p.Spec.Ingress)
			assert.Empty(t, p.Spec.Egress)
			for _, d := range all.selected(t, p.Namespace, &p.Spec.PodSelector) {
				silent = append(silent, d.Name)
			}
			continue
		}
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				assert.True(t, port.Port.StrVal == "webhook" || port.Port.StrVal == "metrics" && len(rule.From) > 0, "%s: %s", p.Name, port.Port)
			}
		}
	}
	assert.ElementsMatch(t, []string{"spaces-placeholder-cpu", "spaces-placeholder-gpu"}, silent)
	closed := slices.ContainsFunc(of[*networkingv1.NetworkPolicy](all), func(p *networkingv1.NetworkPolicy) bool {
		return slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) && p.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] == "warmpool"
	})
	assert.True(t, closed, "what no rule names is closed")
}

// autoscalers scale a Deployment that is there and has no replicas of its own, by parameters that are there.
func (all objects) autoscalers(t *testing.T) {
	t.Helper()
	scaled := map[string]bool{}
	for _, d := range of[*appsv1.Deployment](all) {
		flags := map[string]string{}
		for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
			name, value, _ := strings.Cut(arg, "=")
			flags[name] = value
		}
		if flags["--target"] == "" {
			continue
		}
		assert.Equal(t, d.Namespace, flags["--namespace"], d.Name)
		exists[*corev1.ConfigMap](t, all, d.Namespace, flags["--configmap"], d.Name)
		target := strings.TrimPrefix(flags["--target"], "deployment/")
		exists[*appsv1.Deployment](t, all, d.Namespace, target, d.Name)
		scaled[target] = true
	}
	for _, role := range of[*rbacv1.Role](all) { // of warmpool, by demand
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "deployments/scale") && role.Name == "warmpool-demand" {
				for _, target := range rule.ResourceNames {
					exists[*appsv1.Deployment](t, all, role.Namespace, target, role.Name)
					scaled[target] = true
				}
			}
		}
	}
	for _, d := range of[*appsv1.Deployment](all) {
		if d.Labels["warmpool.sh/pool"] != "" {
			assert.Equal(t, scaled[d.Name], d.Spec.Replicas == nil, "%s: either the autoscaler has a say about replicas, or the manifest", d.Name)
		}
	}
}
