package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"warmpool.sh/webhook/cluster"
)

// Snapshot makes a whole cluster of the objects. Kinds that a Snapshot does not hold are left out. What an API server adds
// of its own is added. No pool has been seen before.
func Snapshot(objects []Object) (*cluster.Snapshot, error) {
	kinds := newKinds()
	c := &contents{objects: slices.Clone(objects)}
	for i, o := range c.objects {
		c.objects[i].keep = kinds.read(o)
	}
	s, errs, _ := c.keepAll(kinds, Options{Strict: true})
	if len(errs) > 0 {
		return nil, join(errs)
	}
	return s, nil
}

// keepFunc adds an object that was read to the definitions of its kind. earlier is another definition of it, or nil.
type keepFunc func(earlier *Object) error

// definitions are the objects of one kind.
type definitions struct {
	cluster.AnyKind
	cluster.Found
}

// kinds are the definitions of all kinds that a Snapshot holds, by kind.
type kinds map[schema.GroupKind]*definitions

func newKinds() kinds {
	all := kinds{}
	for _, k := range cluster.InFiles {
		d := &definitions{k, cluster.Found{Objects: map[string]any{}, Malformed: map[string]string{}, Variants: map[string][]any{}}}
		maps.Copy(d.Objects, k.Preset())
		for _, kind := range append(k.Describe().Also, k.Describe().GroupKind()) {
			all[kind] = d
		}
	}
	return all
}

// read reads an object, perhaps several at the same time; what it returns is then called for one after the other. It is
// nil for kinds that a Snapshot does not hold.
func (all kinds) read(o Object) keepFunc {
	d := all[o.GroupVersionKind().GroupKind()]
	if d == nil || o.GetKind() == "Pod" && o.GetName() == "" { // a pod that is still to be created is not yet part of a cluster
		return nil
	}
	fact, err := d.read(o)
	k := d.key(o)
	return func(earlier *Object) error {
		switch {
		case errors.Is(err, cluster.ErrObsolete):
			d.Malformed[k] = err.Error()
			return nil // it could be read; the audit reports it
		case err != nil:
			d.Malformed[k] = err.Error()
			return err
		case fact == nil:
			return nil
		case earlier != nil:
			return d.addAnother(o, earlier, fact)
		default:
			d.Objects[k] = fact
			return nil
		}
	}
}

func (d *definitions) read(o Object) (any, error) {
	if o.GetName() == "" && len(d.Describe().Also) == 0 {
		return nil, fmt.Errorf("%s: metadata.name: missing; give the object a name", o)
	}
	if d.Describe().IsCustom() {
		fact, err := d.Fact(o.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		return fact, nil
	}
	fact := d.New()
	if err := decodeTyped(o.without(d.Describe().Skipped), fact); err != nil {
		return nil, err
	}
	d.Complete(fact)
	return fact, nil
}

// without is the object without the field at the path, of which it shares the rest.
func (o Object) without(path []string) Object {
	if len(path) == 0 {
		return o
	}
	content := maps.Clone(o.Object)
	o.Unstructured = &unstructured.Unstructured{Object: content}
	for _, name := range path[:len(path)-1] {
		inner, ok := content[name].(map[string]any)
		if !ok {
			return o
		}
		inner = maps.Clone(inner)
		content[name] = inner
		content = inner
	}
	delete(content, path[len(path)-1])
	return o
}

// addAnother adds a definition of an object that has one. Where they differ, none of them is a fact any more.
func (d *definitions) addAnother(o Object, earlier *Object, fact any) error {
	k := d.key(o)
	first := d.Objects[k]
	if first != nil && equality.Semantic.DeepEqual(first, fact) {
		return nil
	}
	if first != nil {
		d.Variants[k] = append(d.Variants[k], first)
		delete(d.Objects, k)
	}
	if !slices.ContainsFunc(d.Variants[k], func(other any) bool { return equality.Semantic.DeepEqual(other, fact) }) {
		d.Variants[k] = append(d.Variants[k], fact)
	}
	if d.Malformed[k] == "" {
		d.Malformed[k] = fmt.Sprintf("defined in %s and otherwise in %s", place(earlier.File, earlier.Document), place(o.File, o.Document))
	}
	return &twiceError{o, *earlier}
}

// snapshot makes a Snapshot of what was kept; others are all objects, of which some kinds follow from what others name.
func (all kinds) snapshot(others []Object, part bool) (*cluster.Snapshot, []error) {
	s := &cluster.Snapshot{LastSeen: cluster.Known[corev1.Node](nil)}
	for _, d := range all {
		d.Part = part
		d.PutFound(s, d.Found)
	}
	classes, errs := nodeClasses(s, others)
	s.NodeClasses, s.Obsolete = classes, obsolete(others)
	if part {
		s.NodeClasses = classes.AsPart()
	}
	return s, errs
}

// nodeClasses are the objects of the kinds that NodePools refer to.
func nodeClasses(s *cluster.Snapshot, objects []Object) (cluster.Facts[cluster.NodeClass], []error) {
	kinds := map[schema.GroupKind]bool{}
	for _, pool := range s.NodePools.All() {
		kinds[schema.GroupKind{Group: pool.NodeClass.Group, Kind: pool.NodeClass.Kind}] = true
	}
	classes := map[string]*cluster.NodeClass{}
	var errs []error
	for _, o := range objects {
		kind := o.GroupVersionKind().GroupKind()
		if !kinds[kind] {
			continue
		}
		class, err := cluster.NodeClassFrom(kind, o.Object)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o, err))
			continue
		}
		classes[class.Key()] = class
	}
	return cluster.Known(classes), errs
}

// obsolete are the objects that Karpenter 1 does not serve.
func obsolete(objects []Object) cluster.Facts[cluster.Obsolete] {
	found := map[string]*cluster.Obsolete{}
	for _, o := range objects {
		if old := cluster.ObsoleteOf(o.GroupVersionKind(), o.GetName()); old != nil {
			found[old.Kind+"/"+old.Name] = old
		}
	}
	return cluster.Known(found)
}

// key is the object's key in the Snapshot.
func (d *definitions) key(o Object) string {
	var parts []string
	if len(d.Describe().Also) > 0 {
		parts = append(parts, o.GetKind())
	}
	if o.GetNamespace() != "" {
		parts = append(parts, o.GetNamespace())
	}
	return strings.Join(append(parts, o.GetName()), "/")
}
