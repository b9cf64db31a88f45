package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Description is what can be said of a kind without its type.
type Description struct {
	// GroupVersionKind has no version for custom resources: discovery gives the one that a cluster serves.
	schema.GroupVersionKind
	// Namespaced is for custom resources; of Kubernetes' own kinds it is known anyway.
	Namespaced bool
	// Optional is a custom resource of which a cluster without its CRD has none; others are unknown there.
	Optional bool
	// OmitTooLarge leaves out objects that are too large to read; others are malformed, and what depends on them is not
	// verified.
	OmitTooLarge bool
	// Also are further kinds of which a Snapshot holds the objects beside the others; their kind is then part of the key.
	Also []schema.GroupKind
	// Skipped is the path of what is most of the text of an object in a file, and not read.
	Skipped []string
}

// IsCustom tells custom resources and others that are read as maps.
func (d *Description) IsCustom() bool { return d.Version == "" }

// Kind is all that differs between one kind of objects and another: where a Snapshot holds them and what is read of each.
type Kind[T any] struct {
	Description
	// in is where a Snapshot holds the objects.
	in func(*Snapshot) *Facts[T]

	// keep leaves of an object from a cluster what rules read: the rest fills memory, and each update of it would make a
	// new Snapshot. Without it all is kept but the managed fields, which no one reads of any kind.
	keep func(*T)
	// wanted tells the objects that the Snapshot holds; without it all.
	wanted func(*T) bool

	// from reads a custom resource, keepContent is keep for it.
	from        func(content map[string]any) (*T, error)
	keepContent func(content map[string]any)

	// complete adds to an object of a file what an API server would; preset are the objects that every API server has.
	complete func(*T)
	preset   map[string]any
}

// AnyKind is a Kind of whatever type, for the packages that read clusters and files.
type AnyKind interface {
	Describe() *Description
	// New makes an empty object.
	New() any
	// Keep drops what rules do not read from an object as the API server sends it. Others are left alone.
	Keep(object any)
	// Fact reads such an object, or the content of a custom resource; nil: a Snapshot does not hold it.
	Fact(object any) (any, error)
	// Complete adds to a fact that was read from a file what an API server would.
	Complete(fact any)
	// Preset are the objects that every API server has.
	Preset() map[string]any
	// Same tells whether rules see no difference between two facts.
	Same(a, b any) bool
	// Unknown are the facts where the kind could not be read.
	Unknown(reason string) AnyFacts
	// Put has the Snapshot hold the facts, which are of this kind.
	Put(s *Snapshot, facts AnyFacts)
	// PutFound has the Snapshot hold what was read.
	PutFound(s *Snapshot, found Found)
}

// Describe is AnyKind's.
func (k *Kind[T]) Describe() *Description { return &k.Description }

// New is AnyKind's.
func (k *Kind[T]) New() any { return new(T) }

// Keep is AnyKind's.
func (k *Kind[T]) Keep(object any) {
	if o, ok := object.(metav1.Object); ok && len(o.GetManagedFields()) > 0 {
		o.SetManagedFields(nil)
	}
	switch o := object.(type) {
	case *T:
		if k.keep != nil {
			k.keep(o)
		}
	case *unstructured.Unstructured:
		if k.keepContent != nil {
			k.keepContent(o.Object)
		}
	}
}

// Fact is AnyKind's.
func (k *Kind[T]) Fact(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok && k.IsCustom() {
		object = u.Object
	}
	var fact *T
	switch o := object.(type) {
	case *T:
		if k.wanted == nil || k.wanted(o) {
			fact = o
		}
	case map[string]any:
		var err error
		if fact, err = k.from(o); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("got %T", object)
	}
	if fact == nil {
		return nil, nil
	}
	return fact, nil
}

// Complete is AnyKind's.
func (k *Kind[T]) Complete(fact any) {
	if typed, ok := fact.(*T); ok && k.complete != nil {
		k.complete(typed)
	}
}

// Preset is AnyKind's.
func (k *Kind[T]) Preset() map[string]any { return k.preset }

// Same compares without the version, which differs for changes of what is not kept; quantities by their value.
func (k *Kind[T]) Same(a, b any) bool {
	x, okX := a.(*T)
	y, okY := b.(*T)
	if !okX || !okY {
		return false
	}
	copied := *x
	object, isObject := any(&copied).(metav1.Object)
	if other, ok := any(y).(metav1.Object); ok && isObject {
		object.SetResourceVersion(other.GetResourceVersion())
	}
	return equality.Semantic.DeepEqual(&copied, y)
}

// Unknown is AnyKind's.
func (k *Kind[T]) Unknown(reason string) AnyFacts { return Unknown[T](reason) }

// Put is AnyKind's.
func (k *Kind[T]) Put(s *Snapshot, facts AnyFacts) {
	if typed, ok := facts.(Facts[T]); ok {
		*k.in(s) = typed
	}
}

// Found is what was read of one kind, by key.
type Found struct {
	Objects           map[string]any
	Malformed, Unread map[string]string
	Variants          map[string][]any
	Part              bool
}

// PutFound is AnyKind's.
func (k *Kind[T]) PutFound(s *Snapshot, found Found) {
	variants := make(map[string][]*T, len(found.Variants))
	for key, all := range found.Variants {
		for _, variant := range all {
			if typed, ok := variant.(*T); ok {
				variants[key] = append(variants[key], typed)
			}
		}
	}
	facts := Known(typed[T](found.Objects)).WithMalformed(found.Malformed).WithUnread(found.Unread).WithVariants(variants)
	facts.part = found.Part
	*k.in(s) = facts
}

// AnyFacts are Facts of whatever type.
type AnyFacts interface {
	Known() bool
	Reason() string
	// Object is Get.
	Object(key string) any
	// Changed is With and WithMalformed.
	Changed(changes map[string]any, malformed map[string]string) AnyFacts
}

// Object is AnyFacts'.
func (f Facts[T]) Object(key string) any {
	if object := f.Get(key); object != nil {
		return object
	}
	return nil // and no interface of a nil pointer
}

// Changed is AnyFacts'.
func (f Facts[T]) Changed(changes map[string]any, malformed map[string]string) AnyFacts {
	return f.With(typed[T](changes)).WithMalformed(malformed)
}

func typed[T any](objects map[string]any) map[string]*T {
	all := make(map[string]*T, len(objects))
	for key, object := range objects {
		all[key], _ = object.(*T)
	}
	return all
}
