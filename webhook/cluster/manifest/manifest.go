// Package manifest reads files as a cluster: Kubernetes objects in YAML or JSON from files, folders and standard input.
//
// paths -> files (source.go) -> documents -> objects (document.go), each checked against the kinds that Kubernetes knows (kinds.go) and in its namespace (scope.go) -> one Reading (reading.go)
// with a Snapshot (snapshot.go). What else lies in a folder is passed over (passed.go). Nothing is contacted.
// Every error names file, document and, where there is one, the field; several are joined.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/webhook/cluster"
)

// maxErrors is where reading stops: nobody corrects more at once, and a hostile file must not make millions.
const maxErrors = 20

// Object is one object of a manifest and where it stands.
type Object struct {
	*unstructured.Unstructured
	// File is the path as given (joined with the folder's path), or "standard input".
	File string
	// Document counts the documents of the file from 1, without those that are empty or hold only comments.
	// The items of a List carry the number of the List's document.
	Document int

	position position
	// keep puts the object into the Snapshot for which it was read; nil: it was read for none. earlier is another
	// definition of the same object; nil: this is the first.
	keep keepFunc
	// earlier is the first definition of the same object, where this is another one.
	earlier *Object
	// assumed tells that the object names no namespace.
	assumed bool
}

// String names the object for messages, such as "pods.yaml, document 2 (Pod team-a/w1)".
func (o Object) String() string {
	return fmt.Sprintf("%s (%s)", place(o.File, o.Document), o.title())
}

// title is the object's kind, namespace and name.
func (o Object) title() string {
	name := o.GetName()
	if name == "" && o.GetGenerateName() != "" {
		name = o.GetGenerateName() + "*"
	}
	if o.GetNamespace() != "" && name != "" {
		name = o.GetNamespace() + "/" + name
	}
	if name != "" {
		name = " " + name
	}
	return o.GetKind() + name
}

func place(file string, document int) string {
	return fmt.Sprintf("%s, document %d", file, document)
}

// Objects reads the objects of all paths in the order of the arguments, files of a folder by name. A path is a file, a
// folder (read with its subfolders, but not hidden ones: .json, .yaml and .yml files) or "-" for stdin. Everything must be
// an object, and none may be defined twice. Objects of API groups that are not Kubernetes's own are kept as they are.
// Namespaced objects without a namespace are in "default".
func Objects(paths []string, stdin io.Reader) ([]Object, error) {
	return ObjectsIn("", paths, stdin)
}

// ObjectsIn is Objects, with the namespace for those without one.
func ObjectsIn(namespace string, paths []string, stdin io.Reader) ([]Object, error) {
	r := &reader{Options: Options{Namespace: namespace, Strict: true}, stdin: stdin, see: func(*Object) {}}
	found := r.all(paths)
	if err := join(slices.Concat(found.refused, found.broken)); err != nil {
		return nil, err
	}
	return found.objects, nil
}

// Read is Load of a whole cluster in which everything must be an object; the error tells what is not.
func Read(paths []string, stdin io.Reader) (*cluster.Snapshot, []Object, error) {
	reading := Load(paths, stdin, Options{Strict: true})
	for _, errs := range [][]error{reading.Refused, reading.Broken} {
		if err := join(errs); err != nil {
			return nil, nil, err
		}
	}
	return reading.Snapshot, reading.Objects, nil
}

func join(errs []error) error {
	if len(errs) > maxErrors {
		errs = append(errs[:maxErrors:maxErrors], errors.New("and more; correct these first"))
	}
	return errors.Join(errs...)
}
