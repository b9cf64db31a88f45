package live

import (
	"context"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// Scope says what an audit looks at.
type Scope struct {
	// Workspaces selects the pods of Workspaces.
	Workspaces labels.Selector
	// Placeholders is the placeholders' own namespace.
	Placeholders string
	// IsPlaceholder tells the placeholder Deployments, in whose namespaces more is read.
	IsPlaceholder func(*appsv1.Deployment) bool
	// Webhooks is the name of warmpool's own webhook configurations of placeholders, PodsWebhook that of its webhook of pods.
	Webhooks, PodsWebhook string
	// WithoutRBAC says why no one asks for Roles and their bindings; empty: they are read.
	WithoutRBAC string
}

// maxNamespaces is up to where namespaces are asked one by one; beyond it one question for all costs less.
const maxNamespaces = 50

// Around reads what only an audit looks at, as far as the facts call for it. The number of requests depends on the
// namespaces with placeholders, the CPAs and the kinds of node classes, and on the number of pods only by their pages.
func (r *Reading) Around(ctx context.Context, facts *cluster.Snapshot, scope Scope) cluster.Around {
	scalers := scalersOf(facts.Deployments, scope)
	here := query{namespaces: namespacesOf(facts.Deployments, scope.IsPlaceholder, scalers), first: scope.Placeholders}
	around := cluster.Around{
		Pods:    r.pods(ctx, here, scope.Workspaces),
		Events:  list(ctx, r, &eventsv1.EventList{}, here, strip, as[eventsv1.Event]),
		Budgets: list(ctx, r, &policyv1.PodDisruptionBudgetList{}, here, strip, as[policyv1.PodDisruptionBudget]),

		ConfigMaps:         get[corev1.ConfigMap](ctx, r, configMapsOf(scalers, scope.Placeholders)),
		MutatingWebhooks:   get[admissionregistrationv1.MutatingWebhookConfiguration](ctx, r, []client.ObjectKey{{Name: scope.Webhooks}, {Name: scope.PodsWebhook}}),
		ValidatingWebhooks: get[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, r, []client.ObjectKey{{Name: scope.Webhooks}}),

		NodeClasses:     r.nodeClasses(ctx, facts.NodePools),
		CapacityBuffers: listCustom(ctx, r, cluster.CapacityBufferGroupKind, cluster.Known[cluster.CapacityBuffer](nil), cluster.CapacityBufferFrom),
		WorkloadPriorityClasses: listCustom(ctx, r, cluster.WorkloadPriorityClassGroupKind,
			cluster.Known[cluster.WorkloadPriorityClass](nil), cluster.WorkloadPriorityClassFrom),

		// No one asks for them where there is no claim.
		Volumes: cluster.Known[corev1.PersistentVolume](nil), Claims: cluster.Known[corev1.PersistentVolumeClaim](nil),
	}
	r.targets(ctx, &around)
	r.rights(ctx, &around, here, len(scalers) > 0, scope.WithoutRBAC)
	around.PodTemplates = get[corev1.PodTemplate](ctx, r, podTemplatesOf(around.CapacityBuffers))
	if claimed := claimingNamespaces(around.Pods, scope.Workspaces); len(claimed) > 0 {
		around.Claims = list(ctx, r, &corev1.PersistentVolumeClaimList{}, query{namespaces: slices.Sorted(maps.Keys(claimed))}, strip, as[corev1.PersistentVolumeClaim])
		around.Volumes = list(ctx, r, &corev1.PersistentVolumeList{}, everywhere, strip, as[corev1.PersistentVolume])
	}
	return around
}

// rights reads who may do what, where there is a CPA that needs to.
func (r *Reading) rights(ctx context.Context, around *cluster.Around, here query, needed bool, without string) {
	switch {
	case !needed:
		around.Roles, around.RoleBindings = cluster.Known[rbacv1.Role](nil), cluster.Known[rbacv1.RoleBinding](nil)
		around.ClusterRoles, around.ClusterRoleBindings = cluster.Known[rbacv1.ClusterRole](nil), cluster.Known[rbacv1.ClusterRoleBinding](nil)
	case without != "":
		around.Roles, around.RoleBindings = cluster.Unknown[rbacv1.Role](without), cluster.Unknown[rbacv1.RoleBinding](without)
		around.ClusterRoles, around.ClusterRoleBindings = cluster.Unknown[rbacv1.ClusterRole](without), cluster.Unknown[rbacv1.ClusterRoleBinding](without)
	default:
		around.Roles = list(ctx, r, &rbacv1.RoleList{}, here, strip, as[rbacv1.Role])
		around.RoleBindings = list(ctx, r, &rbacv1.RoleBindingList{}, here, strip, as[rbacv1.RoleBinding])
		around.ClusterRoles = list(ctx, r, &rbacv1.ClusterRoleList{}, everywhere, strip, as[rbacv1.ClusterRole])
		around.ClusterRoleBindings = list(ctx, r, &rbacv1.ClusterRoleBindingList{}, everywhere, strip, as[rbacv1.ClusterRoleBinding])
	}
}

// pods are those of Workspaces anywhere, and all in the namespaces of placeholders.
func (r *Reading) pods(ctx context.Context, here query, workspaces labels.Selector) cluster.Facts[corev1.Pod] {
	pods := list(ctx, r, &corev1.PodList{}, query{selector: workspaces}, stripAuditedPod, as[corev1.Pod])
	if !pods.Known() {
		return pods
	}
	placeholders := list(ctx, r, &corev1.PodList{}, here, stripAuditedPod, as[corev1.Pod])
	if !placeholders.Known() {
		return placeholders
	}
	return pods.With(maps.Collect(placeholders.All())).WithUnread(placeholders.Unread())
}

// nodeClasses reads those that NodePools refer to; a kind that the cluster does not have has none.
func (r *Reading) nodeClasses(ctx context.Context, nodePools cluster.Facts[cluster.NodePool]) cluster.Facts[cluster.NodeClass] {
	refs := map[string]cluster.NodeClassRef{}
	for _, pool := range nodePools.All() {
		if pool.NodeClass.Name != "" && pool.NodeClass.Kind != "" {
			refs[pool.NodeClass.Key()] = pool.NodeClass
		}
	}
	classes, malformed := map[string]*cluster.NodeClass{}, map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(refs)) {
		ref := refs[key]
		kind := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
		object, err := r.custom(ctx, kind, client.ObjectKey{Name: ref.Name})
		switch {
		case err != nil:
			return cluster.Unknown[cluster.NodeClass](r.note("get", kind.String()+" "+ref.Name, "", err))
		case object == nil:
			continue
		}
		class, err := cluster.NodeClassFrom(kind, object.Object)
		if err != nil {
			malformed[key] = err.Error()
			continue
		}
		classes[key] = class
	}
	return cluster.Known(classes).WithMalformed(malformed)
}

// custom reads an object of a kind whose version discovery tells; nil when there is none.
func (r *Reading) custom(ctx context.Context, kind schema.GroupKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	r.progress(kind.String())
	mapping, err := r.client.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.client.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	return object, nil
}

// scaler is a Deployment that runs a Cluster Proportional Autoscaler, and where it reads its parameters; without a
// name where no flag tells.
type scaler struct {
	namespace string
	configMap client.ObjectKey
}

// scalersOf are the Deployments that run a CPA which concerns placeholders. Others' CPAs are no one's business here.
func scalersOf(deployments cluster.Facts[appsv1.Deployment], scope Scope) []scaler {
	placeholders := map[string]bool{} // by name: one that looks in the wrong namespace is a fault to report
	for _, d := range deployments.All() {
		if scope.IsPlaceholder(d) {
			placeholders[d.Name] = true
		}
	}
	var found []scaler
	for _, d := range deployments.All() {
		cpa := cluster.CPAOf(d)
		if cpa == nil {
			continue
		}
		namespace := cpa.Namespace
		if namespace == "" || strings.Contains(namespace, "$(") {
			namespace = d.Namespace // as the downward API says, as a rule
		}
		concerns := d.Namespace == scope.Placeholders || namespace == scope.Placeholders ||
			slices.ContainsFunc(cpa.Targets(), func(t cluster.Target) bool { return placeholders[t.Name] })
		if concerns {
			found = append(found, scaler{d.Namespace, client.ObjectKey{Namespace: namespace, Name: cpa.Flags["configmap"]}})
		}
	}
	return found
}

// configMapsOf are those that CPAs name; those of CPAs in the placeholders' own namespace come first.
func configMapsOf(scalers []scaler, own string) []client.ObjectKey {
	var keys []client.ObjectKey
	seen := map[client.ObjectKey]bool{}
	for _, inOwn := range []bool{true, false} {
		for _, s := range scalers {
			if (s.namespace == own) == inOwn && s.configMap.Name != "" && !seen[s.configMap] {
				seen[s.configMap] = true
				keys = append(keys, s.configMap)
			}
		}
	}
	return keys
}

func sortedKeys(keys map[client.ObjectKey]bool) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(keys), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
}

// namespacesOf are those with placeholders, and of their CPAs and the ConfigMaps of these.
func namespacesOf(deployments cluster.Facts[appsv1.Deployment], isPlaceholder func(*appsv1.Deployment) bool, scalers []scaler) []string {
	names := map[string]bool{}
	for _, d := range deployments.All() {
		if isPlaceholder(d) {
			names[d.Namespace] = true
		}
	}
	for _, s := range scalers {
		names[s.namespace] = true
		if validName(s.configMap.Namespace) {
			names[s.configMap.Namespace] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...) // not nil, which is all
}

// podTemplatesOf are the keys of those that buffers name.
func podTemplatesOf(buffers cluster.Facts[cluster.CapacityBuffer]) []client.ObjectKey {
	names := map[client.ObjectKey]bool{}
	for _, buffer := range buffers.All() {
		if buffer.PodTemplate != "" {
			names[client.ObjectKey{Namespace: buffer.Namespace, Name: buffer.PodTemplate}] = true
		}
	}
	return sortedKeys(names)
}

// claimingNamespaces are those in which pods of Workspaces use claims.
func claimingNamespaces(pods cluster.Facts[corev1.Pod], workspaces labels.Selector) map[string]bool {
	names := map[string]bool{}
	for _, pod := range pods.All() {
		uses := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
		if uses && workspaces.Matches(labels.Set(pod.Labels)) {
			names[pod.Namespace] = true
		}
	}
	return names
}
