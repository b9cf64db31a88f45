package cluster

import (
	"maps"
	"slices"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// Facts are all objects of one kind, or the reason why they are not known. The zero value is not known. They are
// immutable; With makes new ones that share all that did not change, so that one node more costs the same at 10 nodes
// and at 10,000.
type Facts[T any] struct {
	known     bool
	unknown   string
	tree      *iradix.Tree[*T]
	malformed map[string]string
	// part tells that the cluster may hold more objects of the kind.
	part bool
	// variants are the definitions of objects that are defined more than once.
	variants map[string][]*T
	// unread are the namespaces whose objects could not be read, and why.
	unread map[string]string

	// version tells these Facts from all others; changed are the keys in which they differ from the parent version.
	version, parent *version
	changed         []string
}

type version struct{ _ byte } // not empty: pointers to empty structs may be equal

// Known makes Facts of the objects of a kind by their keys.
func Known[T any](byKey map[string]*T) Facts[T] {
	txn := iradix.New[*T]().Txn()
	for key, object := range byKey {
		txn.Insert([]byte(key), object)
	}
	return Facts[T]{known: true, tree: txn.Commit(), version: &version{}}
}

// Unknown makes Facts of a kind that could not be read; reason is a short clause such as
// "no NodePool CRD in the cluster".
func Unknown[T any](reason string) Facts[T] {
	return Facts[T]{unknown: reason, version: &version{}}
}

// With returns the facts with objects added, replaced or, where nil, removed. Facts that were not known are known then.
func (f Facts[T]) With(changes map[string]*T) Facts[T] {
	tree := f.tree
	if tree == nil {
		tree = iradix.New[*T]()
	}
	txn := tree.Txn()
	for key, object := range changes {
		if object == nil {
			txn.Delete([]byte(key))
		} else {
			txn.Insert([]byte(key), object)
		}
	}
	next := Facts[T]{known: true, tree: txn.Commit(), malformed: f.malformed, part: f.part, variants: f.variants, unread: f.unread, version: &version{}}
	if f.known {
		next.parent, next.changed = f.version, slices.Sorted(maps.Keys(changes))
	}
	return next
}

// ChangedSince returns the keys, sorted, in which the facts differ from earlier ones that they were made of by at most
// one With. ok is false when too much happened in between, or another reading: everything may differ then.
func (f Facts[T]) ChangedSince(earlier Facts[T]) (keys []string, ok bool) {
	switch {
	case f.version == earlier.version:
		return nil, true
	case f.parent != nil && f.parent == earlier.version:
		return f.changed, true
	default:
		return nil, false
	}
}

// Differs tells whether the facts may be others than the earlier ones.
func (f Facts[T]) Differs(earlier Facts[T]) bool {
	keys, ok := f.ChangedSince(earlier)
	return !ok || len(keys) > 0
}

// WithMalformed returns the facts with the keys of objects that exist but could not be read, and why.
// The map must not change afterwards.
func (f Facts[T]) WithMalformed(reasons map[string]string) Facts[T] {
	f.malformed = reasons
	return f
}

// WithUnread returns the facts with the namespaces whose objects could not be read, and why: they are unknown there, and
// only there. The map must not change afterwards.
func (f Facts[T]) WithUnread(reasons map[string]string) Facts[T] {
	f.unread = reasons
	return f
}

// Unread are the namespaces whose objects could not be read, and why.
func (f Facts[T]) Unread() map[string]string { return f.unread }

// AsPart returns the facts as a part of the objects of the kind: what is absent may be elsewhere in the cluster.
func (f Facts[T]) AsPart() Facts[T] {
	f.part = true
	return f
}

// Whole tells whether these are all objects of the kind, so that an absent one does not exist.
func (f Facts[T]) Whole() bool { return !f.part }

// Missing says of an object that is absent what is known about it.
func (f Facts[T]) Missing() string {
	if f.part {
		return "is not among these files"
	}
	return "does not exist"
}

// WithVariants returns the facts with the definitions of objects that are defined more than once. Get and All leave these
// out; Malformed should say why. The map must not change afterwards.
func (f Facts[T]) WithVariants(variants map[string][]*T) Facts[T] {
	f.variants = variants
	return f
}

// Variants are the definitions of an object that has more than one.
func (f Facts[T]) Variants(key string) []*T { return f.variants[key] }

// Defined yields every definition: all objects with number 0, then those that are defined more than once, each definition
// with its number from 1.
func (f Facts[T]) Defined() func(yield func(int, *T) bool) {
	return func(yield func(int, *T) bool) {
		for _, object := range f.All() {
			if !yield(0, object) {
				return
			}
		}
		for _, key := range slices.Sorted(maps.Keys(f.variants)) {
			for i, object := range f.variants[key] {
				if !yield(i+1, object) {
					return
				}
			}
		}
	}
}

// Known tells whether the objects of the kind could be read; an absent object is then really absent,
// unless Malformed says why it is left out, or the facts are not Whole.
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

// KnownIn tells whether the objects of a namespace could be read.
func (f Facts[T]) KnownIn(namespace string) bool { return f.ReasonIn(namespace) == "" }

// ReasonIn says why the objects of a namespace are not known; empty when they are.
func (f Facts[T]) ReasonIn(namespace string) string {
	if f.known {
		return f.unread[namespace]
	}
	return f.Reason()
}

// Get returns the object with the key, or nil.
func (f Facts[T]) Get(key string) *T {
	if f.tree == nil {
		return nil
	}
	object, _ := f.tree.Get([]byte(key))
	return object
}

// Malformed says why the object with the key, which exists, could not be read and is left out; empty when it is not so.
func (f Facts[T]) Malformed(key string) string { return f.malformed[key] }

// AllMalformed are the keys of all objects that could not be read, sorted.
func (f Facts[T]) AllMalformed() []string { return slices.Sorted(maps.Keys(f.malformed)) }

// Len is the number of objects.
func (f Facts[T]) Len() int {
	if f.tree == nil {
		return 0
	}
	return f.tree.Len()
}

// All yields key and object in the order of the keys.
func (f Facts[T]) All() func(yield func(string, *T) bool) { return f.Prefix("") }

// Prefix yields those whose key begins with the prefix, such as "namespace/", at a cost that does not grow with the rest.
func (f Facts[T]) Prefix(prefix string) func(yield func(string, *T) bool) {
	return func(yield func(string, *T) bool) {
		if f.tree == nil {
			return
		}
		f.tree.Root().WalkPrefix([]byte(prefix), func(key []byte, object *T) bool { return !yield(string(key), object) })
	}
}
