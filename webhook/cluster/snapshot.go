// Package cluster is the one view of the cluster that rules see: a Snapshot of plain, immutable data,
// made by a Reader from a live API server (live) or from files (manifest).
package cluster

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	PriorityClasses Facts[schedulingv1.PriorityClass]
	Namespaces      Facts[corev1.Namespace]
	Templates       Facts[WorkspaceTemplate]
	Deployments     Facts[appsv1.Deployment]
}

// Facts are all objects of one kind, or the reason why they are not known. The zero value is not known.
type Facts[T any] struct {
	known     bool
	unknown   string
	keys      []string
	byKey     map[string]*T
	malformed map[string]string
}

// Known makes Facts of the objects of a kind by their keys. The map must not change afterwards.
func Known[T any](byKey map[string]*T) Facts[T] {
	return Facts[T]{known: true, keys: slices.Sorted(maps.Keys(byKey)), byKey: byKey}
}

// Unknown makes Facts of a kind that could not be read; reason is a short clause such as
// "no NodePool CRD in the cluster".
func Unknown[T any](reason string) Facts[T] {
	return Facts[T]{unknown: reason}
}

// WithMalformed returns the facts with the keys of objects that exist but could not be read, and why.
// The map must not change afterwards.
func (f Facts[T]) WithMalformed(reasons map[string]string) Facts[T] {
	f.malformed = reasons
	return f
}

// Known tells whether the objects of the kind could be read; an absent object is then really absent,
// unless Malformed says why it is left out.
func (f Facts[T]) Known() bool { return f.known }

// Reason says why the facts are not known; empty when they are.
func (f Facts[T]) Reason() string {
	switch {
	case f.known:
		return ""
	case f.unknown == "":
		return "not read"
	default:
		return f.unknown
	}
}

// Get returns the object with the key, or nil.
func (f Facts[T]) Get(key string) *T { return f.byKey[key] }

// Malformed says why the object with the key, which exists, could not be read and is left out; empty when it is not so.
func (f Facts[T]) Malformed(key string) string { return f.malformed[key] }

// Len is the number of objects.
func (f Facts[T]) Len() int { return len(f.keys) }

// All yields key and object in the order of the keys.
func (f Facts[T]) All() func(yield func(string, *T) bool) {
	return func(yield func(string, *T) bool) {
		for _, key := range f.keys {
			if !yield(key, f.byKey[key]) {
				return
			}
		}
	}
}
