package live

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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

// list reads the objects of a kind in pages. What cannot be listed is not known, in one namespace or at all, and the
// reason is noted.
func list[T any](ctx context.Context, r *Reading, objects client.ObjectList, q query, transform toolscache.TransformFunc, convert func(any) (*T, error)) cluster.Facts[T] {
	name := r.resourceName(objects)
	r.progress(name)
	transform = bounded(transform)
	facts, malformed := map[string]*T{}, map[string]string{}
	take := func(object runtime.Object) error {
		key, err := toolscache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return err
		}
		kept, err := transform(object)
		if err != nil {
			return err
		}
		fact, err := convert(kept)
		switch {
		case err != nil:
			malformed[key] = err.Error()
		case fact != nil:
			facts[key] = fact
		}
		return nil
	}
	unread, reason := r.eachNamespace(q, name, func(namespace string) error {
		return r.eachItem(ctx, objects, namespace, q.selector, take)
	})
	if reason != "" {
		return cluster.Unknown[T](reason)
	}
	return cluster.Known(facts).WithMalformed(malformed).WithUnread(unread)
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

// listCustom reads the objects of a kind that may not be there; absent is what is then known.
func listCustom[T any](ctx context.Context, r *Reading, kind schema.GroupKind, absent cluster.Facts[T], read func(map[string]any) (*T, error)) cluster.Facts[T] {
	mapping, err := r.client.RESTMapper().RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err):
		return absent
	case err != nil:
		return cluster.Unknown[T](r.note("find", kind.String(), "", err))
	}
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	return list(ctx, r, objects, everywhere, strip, from(read))
}

// get reads objects of a kind by their keys; those that do not exist are left out. What cannot be read is malformed, and
// the kind is not known where that is so of all.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reading, keys []client.ObjectKey) cluster.Facts[T] {
	facts, malformed := map[string]*T{}, map[string]string{}
	name := r.resourceName(P(new(T)))
	reason, refused := "", 0
	keep := bounded(strip)
	for i, key := range keys {
		if why := notAsked(i, key); why != "" {
			malformed[keyOf(key)] = why
			continue
		}
		object := P(new(T))
		r.progress(name)
		err := r.client.Get(ctx, key, object)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			reason = r.noteGet(name, key, err)
			malformed[keyOf(key)] = reason
			refused++
		default:
			kept, err := keep(object)
			if err == nil {
				facts[keyOf(key)], err = as[T](kept)
			}
			if err != nil {
				delete(facts, keyOf(key))
				malformed[keyOf(key)] = err.Error()
			}
		}
	}
	if refused > 0 && refused == len(keys) {
		return cluster.Unknown[T](reason)
	}
	return cluster.Known(facts).WithMalformed(malformed)
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

// noteGet is note for one object. Names in namespaces are somebody's arguments, which go into no log.
func (r *Reading) noteGet(resource string, key client.ObjectKey, err error) string {
	if key.Namespace == "" {
		return r.note("get", resource+" "+key.Name, "", err)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && !apierrors.IsForbidden(err) {
		err = fmt.Errorf("%s (%d)", status.ErrStatus.Reason, status.ErrStatus.Code)
	} else if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	return r.note("get", resource, key.Namespace, err)
}

func keyOf(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// resourceName is how RBAC and kubectl call the kind of an object or list, such as poddisruptionbudgets.policy.
func (r *Reading) resourceName(object runtime.Object) string {
	kind, err := apiutil.GVKForObject(object, r.client.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	if _, isList := object.(client.ObjectList); isList {
		kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource().String()
}

// note remembers why something could not be read, and returns the reason.
func (r *Reading) note(verb, name, namespace string, err error) string {
	what := fmt.Sprintf("%s %s", verb, name)
	if namespace != "" {
		what += " in namespace " + namespace
	}
	reason := "this user may not " + what
	if !apierrors.IsForbidden(err) {
		reason = fmt.Sprintf("cannot %s: %v", what, err)
		r.failures = append(r.failures, fmt.Errorf("%s: %w", what, err))
	}
	r.unreadable = append(r.unreadable, reason)
	resource, _, _ := strings.Cut(name, " ")
	if r.denied == nil {
		r.denied = map[string]bool{}
	}
	r.denied[verb+" "+resource] = true
	return reason
}
