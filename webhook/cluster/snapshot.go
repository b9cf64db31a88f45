// Package cluster is the one view of the cluster that rules see: a Snapshot of plain, immutable data,
// made by a Reader from a live API server (live) or from files (manifest).
package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Reader gives the present Snapshot; it is never nil and nobody changes it afterwards.
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
	Templates       Facts[WorkspaceTemplate]
	Deployments     Facts[appsv1.Deployment]
	DaemonSets      Facts[appsv1.DaemonSet]
	// PlaceholderPods are the pods of the placeholders' namespace. Only a running warmpool reads them.
	PlaceholderPods Facts[corev1.Pod]

	// LastSeen are nodes that stood for their types when a pool last had some, by pool name and type; they tell what a
	// pool offers that is scaled to zero.
	LastSeen Facts[corev1.Node]
}
