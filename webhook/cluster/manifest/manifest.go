// Package manifest reads files as a cluster: Kubernetes objects in YAML or JSON from files, folders and standard input.
//
// paths -> files (source.go) -> documents -> objects, in one pass (quick.go, blocks.go) or by cli-runtime's builder (document.go),
// each checked against the kinds that Kubernetes knows (kinds.go) -> one Snapshot (snapshot.go). Nothing is contacted.
// Every error names file, document and, where there is one, the field; several are joined.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	// keep puts the object into the Snapshot for which it was read; nil: it was read for none.
	keep func() error
}

// String names the object for messages, such as "pods.yaml, document 2 (Pod team-a/w1)".
func (o Object) String() string {
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
	return fmt.Sprintf("%s (%s%s)", place(o.File, o.Document), o.GetKind(), name)
}

func place(file string, document int) string {
	return fmt.Sprintf("%s, document %d", file, document)
}

// Objects reads the objects of all paths in the order of the arguments, files of a folder by name. A path is a file, a
// folder (read with its subfolders, but not hidden ones: .json, .yaml and .yml files) or "-" for stdin. Namespaced
// objects without a namespace get "default". Objects of API groups that are not Kubernetes's own are kept as they are.
func Objects(paths []string, stdin io.Reader) ([]Object, error) {
	objects, errs := readAll(paths, stdin, func(*Object) {})
	if len(errs) > 0 {
		return nil, join(errs)
	}
	return objects, nil
}

// readAll reads what can be read, and tells what cannot. Each object is seen once, several at the same time.
func readAll(paths []string, stdin io.Reader, see func(*Object)) (objects []Object, errs []error) {
	files, errs := expand(paths)
	// Several at once, and as many as one after the other would be: what begins after too many errors is left out below.
	read := make([]struct {
		objects []Object
		errs    []error
	}, len(files))
	var broken atomic.Int64
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		if broken.Load() >= maxErrors {
			break
		}
		group.Go(func() error {
			read[i].objects, read[i].errs = readFile(file, stdin, see)
			broken.Add(int64(len(read[i].errs)))
			return nil
		})
	}
	_ = group.Wait() // errors are in read
	for i := range read {
		if len(errs) >= maxErrors {
			break
		}
		objects = append(objects, read[i].objects...)
		errs = append(errs, read[i].errs...)
	}
	objects, twice := distinct(objects)
	return objects, append(errs, twice...)
}

// Read reads the objects of all paths as Objects does, and makes a Snapshot of them as Snapshot does. Objects of kinds
// that a Snapshot holds have no spec and no status left, so that a large folder is not in memory twice.
func Read(paths []string, stdin io.Reader) (*cluster.Snapshot, []Object, error) {
	snapshot, objects, errs, broken := readBoth(paths, stdin)
	if len(errs) > 0 {
		return nil, nil, join(errs)
	}
	if len(broken) > 0 {
		return nil, nil, join(broken)
	}
	return snapshot, objects, nil
}

// ReadGood is Read for whoever goes on after what is broken: objects and Snapshot, which is never nil, are what could be
// read, and the error tells the rest. Of objects that stand in two places, the first counts.
func ReadGood(paths []string, stdin io.Reader) (*cluster.Snapshot, []Object, error) {
	snapshot, objects, errs, broken := readBoth(paths, stdin)
	return snapshot, objects, join(append(errs, broken...))
}

// readBoth reads objects into their Go types as soon as they are there. broken are the errors of that, errs all others.
func readBoth(paths []string, stdin io.Reader) (s *cluster.Snapshot, objects []Object, errs, broken []error) {
	s = newSnapshot()
	kinds := kindsOf(s)
	objects, errs = readAll(paths, stdin, func(o *Object) {
		if kind, ok := kinds[o.GroupVersionKind().GroupKind()]; ok {
			o.keep = kind.read(*o)
			delete(o.Object, "spec")
			delete(o.Object, "status")
		}
	})
	return s, objects, errs, keepAll(s, kinds, objects)
}

// distinct leaves out and reports objects that stand in two places: which of the two is meant, nobody can know.
func distinct(objects []Object) ([]Object, []error) {
	type identity struct {
		kind            schema.GroupKind
		namespace, name string
	}
	var once []Object
	var errs []error
	first := map[identity]Object{}
	for _, o := range objects {
		if o.GetName() == "" {
			once = append(once, o)
			continue
		}
		id := identity{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
		if earlier, twice := first[id]; twice {
			errs = append(errs, fmt.Errorf("%s: the same object is in %s; remove one of them",
				o, place(earlier.File, earlier.Document)))
			continue
		}
		first[id] = o
		once = append(once, o)
	}
	return once, errs
}

func join(errs []error) error {
	if len(errs) > maxErrors {
		errs = append(errs[:maxErrors:maxErrors], errors.New("and more; correct these first"))
	}
	return errors.Join(errs...)
}
