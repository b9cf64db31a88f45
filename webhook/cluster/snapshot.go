// Package cluster is the one view of the cluster that rules see: a Snapshot of plain, immutable data,
// made by a Reader from a live API server (live) or from files (manifest).
package cluster

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Reader gives the present Snapshot; it is never nil and no one changes it afterwards.
type Reader interface {
	Snapshot() *Snapshot
}

// Snapshot is what is known of a cluster at one moment. Cluster-scoped facts are keyed by name,
// namespaced ones by namespace/name.
type Snapshot struct {
	Nodes           Facts[corev1.Node]
	NodePools       Facts[NodePool]
	NodeClaims      Facts[NodeClaim]
	PriorityClasses Facts[schedulingv1.PriorityClass]
	Namespaces      Facts[corev1.Namespace]
	LimitRanges     Facts[corev1.LimitRange]
	RuntimeClasses  Facts[nodev1.RuntimeClass]
	// ResourceQuotas are those of QuotaNamespace alone where that is set: a running warmpool may read no others.
	ResourceQuotas Facts[corev1.ResourceQuota]
	QuotaNamespace string
	Templates      Facts[WorkspaceTemplate]
	Deployments    Facts[appsv1.Deployment]
	DaemonSets     Facts[appsv1.DaemonSet]
	// PlaceholderPods are the pods of the placeholders' namespace. Only a running warmpool reads them.
	PlaceholderPods Facts[corev1.Pod]

	Around

	// LastSeen are nodes that stood for their types when a pool last had some, by pool name and type; they tell what a
	// pool offers that is scaled to zero.
	LastSeen Facts[corev1.Node]
}

// Around is what only an audit looks at. It is read when an audit runs, and not known elsewhere.
type Around struct {
	// Pods are those of Workspaces and of placeholders.
	Pods Facts[corev1.Pod]
	// Events are those of the placeholders' namespaces.
	Events     Facts[eventsv1.Event]
	ConfigMaps Facts[corev1.ConfigMap]
	Budgets    Facts[policyv1.PodDisruptionBudget]

	HorizontalPodAutoscalers Facts[autoscalingv2.HorizontalPodAutoscaler]

	Roles               Facts[rbacv1.Role]
	RoleBindings        Facts[rbacv1.RoleBinding]
	ClusterRoles        Facts[rbacv1.ClusterRole]
	ClusterRoleBindings Facts[rbacv1.ClusterRoleBinding]

	Volumes Facts[corev1.PersistentVolume]
	Claims  Facts[corev1.PersistentVolumeClaim]

	MutatingWebhooks   Facts[admissionregistrationv1.MutatingWebhookConfiguration]
	ValidatingWebhooks Facts[admissionregistrationv1.ValidatingWebhookConfiguration]

	// Obsolete are the objects of APIs that Karpenter 1 does not serve, by KIND/NAME; only files have them.
	Obsolete Facts[Obsolete]
	// Workloads make pods and are neither Deployments nor DaemonSets, by Workload.Key. Only files have them: a live audit
	// asks for no right to read them, and sees their pods.
	Workloads Facts[Workload]
	// Services and Certificates are those that warmpool's webhook configurations refer to; from files all.
	Services     Facts[corev1.Service]
	Certificates Facts[Certificate]

	// NodeClasses are those that NodePools refer to, by NodeClassRef.Key.
	NodeClasses Facts[NodeClass]
	// PodTemplates are those that CapacityBuffers refer to.
	PodTemplates            Facts[corev1.PodTemplate]
	CapacityBuffers         Facts[CapacityBuffer]
	WorkloadPriorityClasses Facts[WorkloadPriorityClass]
}
