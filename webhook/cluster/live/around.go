package live

import (
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	// Demand is the ConfigMap with the demand of pools; without a name it is not read.
	Demand client.ObjectKey
	// WithoutRBAC says why no one asks for Roles and their bindings; empty: they are read.
	WithoutRBAC string
}

// maxNamespaces is up to where namespaces are asked one by one; beyond it one question for all costs less.
const maxNamespaces = 50

// Around reads what only an audit looks at, as far as the facts call for it. The number of requests depends on the
// namespaces with placeholders, the CPAs and the kinds of node classes, and on the number of pods only by their pages.
func (r *Reading) Around(ctx context.Context, facts *cluster.Snapshot, scope Scope) cluster.Around {
	s := *facts
	s.Around = cluster.Around{}
	scalers := scalersOf(s.Deployments, scope)
	here := query{namespaces: namespacesOf(s.Deployments, scope.IsPlaceholder, scalers), first: scope.Placeholders}
	r.pods(ctx, &s, here, scope.Workspaces)
	r.list(ctx, &s, here, cluster.Events, cluster.PodDisruptionBudgets, cluster.HorizontalPodAutoscalers)
	configMaps := configMapsOf(scalers, scope.Placeholders)
	if scope.Demand.Name != "" {
		configMaps = append(configMaps, scope.Demand)
	}
	r.get(ctx, &s, cluster.ConfigMaps, configMaps)
	r.get(ctx, &s, cluster.MutatingWebhooks, []client.ObjectKey{{Name: scope.Webhooks}, {Name: scope.PodsWebhook}})
	r.get(ctx, &s, cluster.ValidatingWebhooks, []client.ObjectKey{{Name: scope.Webhooks}})
	s.NodeClasses = r.nodeClasses(ctx, s.NodePools)
	r.list(ctx, &s, everywhere, cluster.CapacityBuffers, cluster.WorkloadPriorityClasses)
	r.targets(ctx, &s)
	r.rights(ctx, &s, here, len(scalers) > 0, scope.WithoutRBAC)
	r.get(ctx, &s, cluster.PodTemplates, podTemplatesOf(s.CapacityBuffers))
	claimed := query{namespaces: claimingNamespaces(s.Pods, scope.Workspaces)}
	r.list(ctx, &s, claimed, cluster.PersistentVolumeClaims)
	if len(claimed.namespaces) > 0 {
		r.list(ctx, &s, everywhere, cluster.PersistentVolumes)
	} else { // no one asks for them where there is no claim
		cluster.PersistentVolumes.PutFound(&s, cluster.Found{})
	}
	return s.Around
}

// rights reads who may do what, where there is a CPA that needs to.
func (r *Reading) rights(ctx context.Context, s *cluster.Snapshot, here query, needed bool, without string) {
	if needed && without == "" {
		r.list(ctx, s, here, cluster.Roles, cluster.RoleBindings)
		r.list(ctx, s, everywhere, cluster.ClusterRoles, cluster.ClusterRoleBindings)
		return
	}
	for _, k := range []cluster.AnyKind{cluster.Roles, cluster.RoleBindings, cluster.ClusterRoles, cluster.ClusterRoleBindings} {
		if needed {
			k.Put(s, k.Unknown(without))
		} else {
			k.PutFound(s, cluster.Found{})
		}
	}
}

// pods are those of Workspaces anywhere, and all in the namespaces of placeholders.
func (r *Reading) pods(ctx context.Context, s *cluster.Snapshot, here query, workspaces labels.Selector) {
	found, reason := r.find(ctx, query{selector: workspaces}, cluster.Pods)
	placeholders := cluster.Found{}
	if reason == "" {
		placeholders, reason = r.find(ctx, here, cluster.Pods)
	}
	if reason != "" {
		s.Pods = cluster.Unknown[corev1.Pod](reason)
		return
	}
	maps.Copy(found.Objects, placeholders.Objects)
	maps.Copy(found.Malformed, placeholders.Malformed)
	found.Unread = placeholders.Unread
	cluster.Pods.PutFound(s, found)
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
		r.progress(kind.String())
		object, err := r.object(ctx, kind.WithVersion(""), client.ObjectKey{Name: ref.Name})
		if err != nil {
			return cluster.Unknown[cluster.NodeClass](r.note("get", kind.String()+" "+ref.Name, "", err))
		}
		if custom, ok := object.(*unstructured.Unstructured); ok {
			class, err := cluster.NodeClassFrom(kind, custom.Object)
			if err != nil {
				malformed[key] = err.Error()
				continue
			}
			classes[key] = class
		}
	}
	return cluster.Known(classes).WithMalformed(malformed)
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
	return sortedNames(names)
}

// sortedNames are not nil, which is all.
func sortedNames(names map[string]bool) []string {
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
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
func claimingNamespaces(pods cluster.Facts[corev1.Pod], workspaces labels.Selector) []string {
	names := map[string]bool{}
	for _, pod := range pods.All() {
		uses := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
		if uses && workspaces.Matches(labels.Set(pod.Labels)) {
			names[pod.Namespace] = true
		}
	}
	return sortedNames(names)
}
