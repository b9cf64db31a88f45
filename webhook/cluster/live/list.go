package live

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// maxGets is how many objects of a kind are read by their names: some are named by Deployments and others that anybody may
// make, and each is a request.
const maxGets = 100

// query is which objects of a kind are listed: in the namespaces (nil: in all), with labels that the selector takes.
type query struct {
	namespaces []string
	// first is the namespace that is asked alone where the namespaces are many and not all may be asked at once.
	first    string
	selector labels.Selector
}

var everywhere = query{}

// list has a Snapshot hold the objects of a kind, read in pages. What cannot be listed is not known, in one namespace or
// at all, and the reason is noted.
func (r *Reading) list(ctx context.Context, s *cluster.Snapshot, q query, kinds ...cluster.AnyKind) {
	for _, k := range kinds {
		if found, reason := r.find(ctx, q, k); reason != "" {
			k.Put(s, k.Unknown(reason))
		} else {
			k.PutFound(s, found)
		}
	}
}

// find lists the objects of a kind; reason says why it cannot.
func (r *Reading) find(ctx context.Context, q query, k cluster.AnyKind) (found cluster.Found, reason string) {
	name := resourceName(k)
	objects, err := r.newList(k.Describe())
	switch {
	case meta.IsNoMatchError(err) && k.Describe().Optional:
		return cluster.Found{}, ""
	case meta.IsNoMatchError(err):
		return cluster.Found{}, noCRD(k.Describe())
	case err != nil:
		return cluster.Found{}, r.note("find", k.Describe().GroupKind().String(), "", err)
	}
	r.progress(name)
	transform := bounded(keep(k, r.candidate))
	found = cluster.Found{Objects: map[string]any{}, Malformed: map[string]string{}}
	each := func(object runtime.Object) error {
		key, err := toolscache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return err
		}
		kept, err := transform(object)
		if err != nil {
			return err
		}
		take(&found, k, key, kept)
		return nil
	}
	found.Unread, reason = r.eachNamespace(q, name, func(namespace string) error {
		return r.eachItem(ctx, objects, namespace, q.selector, each)
	})
	return found, reason
}

// take adds an object that was transformed.
func take(found *cluster.Found, k cluster.AnyKind, key string, object any) {
	fact, err := factOf(k, object)
	switch {
	case err != nil:
		found.Malformed[key] = err.Error()
	case fact != nil:
		found.Objects[key] = fact
	}
}

// newList makes a list of objects of the kind; discovery tells the version of custom resources.
func (r *Reading) newList(of *cluster.Description) (client.ObjectList, error) {
	kind := of.GroupVersionKind
	if of.IsCustom() {
		mapping, err := r.client.RESTMapper().RESTMapping(kind.GroupKind())
		if err != nil {
			return nil, err
		}
		kind = mapping.GroupVersionKind
	}
	kind.Kind += "List"
	if of.IsCustom() {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kind)
		return objects, nil
	}
	object, err := r.client.Scheme().New(kind)
	objects, _ := object.(client.ObjectList)
	return objects, err
}

// eachNamespace reads in the namespaces of a query, or in all at once. unread are those that cannot be read; reason says
// why none can.
func (r *Reading) eachNamespace(q query, name string, read func(namespace string) error) (unread map[string]string, reason string) {
	unread = map[string]string{}
	namespaces := q.namespaces
	if namespaces == nil || len(namespaces) > maxNamespaces {
		err := read(metav1.NamespaceAll)
		if err == nil {
			return nil, ""
		}
		reason := r.note("list", name, "", err)
		if namespaces == nil || q.first == "" || !apierrors.IsForbidden(err) {
			return nil, reason
		}
		for _, namespace := range namespaces {
			unread[namespace] = reason
		}
		delete(unread, q.first)
		namespaces = []string{q.first}
	}
	known := len(namespaces) == 0
	for _, namespace := range namespaces {
		if err := read(namespace); err != nil {
			unread[namespace] = r.note("list", name, namespace, err)
		} else {
			known = true
		}
	}
	if !known {
		return nil, unread[namespaces[0]]
	}
	return unread, ""
}

// eachItem hands on the objects page by page.
func (r *Reading) eachItem(ctx context.Context, objects client.ObjectList, namespace string, selector labels.Selector, each func(runtime.Object) error) error {
	_, err := InPages(func(limit int64, token string) (runtime.Object, error) {
		page, ok := objects.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", objects)
		}
		err := r.client.List(ctx, page, &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: limit, Continue: token})
		return page, err
	}, each)
	return err
}

// get has a Snapshot hold the objects of a kind with the keys; those that do not exist are left out. What cannot be read is
// malformed, and the kind is not known where that is so of all.
func (r *Reading) get(ctx context.Context, s *cluster.Snapshot, k cluster.AnyKind, keys []client.ObjectKey) {
	found := cluster.Found{Objects: map[string]any{}, Malformed: map[string]string{}}
	name := resourceName(k)
	reason, refused := "", 0
	transform := bounded(keep(k, nil))
	for i, key := range keys {
		if why := notAsked(i, key); why != "" {
			found.Malformed[keyOf(key)] = why
			continue
		}
		r.progress(name)
		object, err := r.object(ctx, k.Describe().GroupVersionKind, key)
		switch {
		case err != nil:
			reason = r.noteGet(name, key, err)
			found.Malformed[keyOf(key)] = reason
			refused++
		case object != nil:
			kept, err := transform(object)
			if err != nil {
				found.Malformed[keyOf(key)] = err.Error()
				continue
			}
			take(&found, k, keyOf(key), kept)
		}
	}
	if refused > 0 && refused == len(keys) {
		k.Put(s, k.Unknown(reason))
		return
	}
	k.PutFound(s, found)
}

// object reads an object of a kind without a version where it is a custom resource; nil where there is none.
func (r *Reading) object(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	var object client.Object
	if kind.Version != "" {
		empty, err := r.client.Scheme().New(kind)
		if err != nil {
			return nil, err
		}
		object, _ = empty.(client.Object)
	} else {
		mapping, err := r.client.RESTMapper().RESTMapping(kind.GroupKind())
		switch {
		case meta.IsNoMatchError(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		custom := &unstructured.Unstructured{}
		custom.SetGroupVersionKind(mapping.GroupVersionKind)
		object = custom
	}
	switch err := r.client.Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return object, nil
	}
}

// notAsked says why the API server is not asked for the object with the key; empty: it is.
func notAsked(i int, key client.ObjectKey) string {
	switch {
	case !validName(key.Name) || key.Namespace != "" && !validName(key.Namespace):
		return "no object can have this name"
	case i >= maxGets:
		return fmt.Sprintf("more than %d are named", maxGets)
	default:
		return ""
	}
}

// validName tells whether the API server can be asked for an object, or about a namespace, of the name.
func validName(name string) bool { return name != "" && len(content.IsPathSegmentName(name)) == 0 }

func keyOf(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// resourceName is how RBAC and kubectl call a kind, such as poddisruptionbudgets.policy.
func resourceName(k cluster.AnyKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(k.Describe().GroupVersionKind)
	return plural.GroupResource().String()
}
