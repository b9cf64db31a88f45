package live

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"warmpool.sh/webhook/cluster"
)

// pageSize bounds what the API server has to send at once.
const pageSize = 500

// query is which objects of a kind are listed: in the namespaces (empty: in all), with labels that the selector takes.
type query struct {
	namespaces []string
	selector   labels.Selector
}

var everywhere = query{}

// list reads the objects of a kind in pages. What cannot be listed is not known, and the reason is noted.
func list[T any](ctx context.Context, r *Reading, objects client.ObjectList, q query, transform toolscache.TransformFunc, convert func(any) (*T, error)) cluster.Facts[T] {
	namespaces := q.namespaces
	if namespaces == nil {
		namespaces = []string{metav1.NamespaceAll}
	}
	name := r.resourceName(objects)
	r.progress(name)
	facts, malformed := map[string]*T{}, map[string]string{}
	for _, namespace := range namespaces {
		err := r.eachItem(ctx, objects, namespace, q.selector, func(object runtime.Object) error {
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
		})
		if err != nil {
			return cluster.Unknown[T](r.note("list", name, namespace, err))
		}
	}
	return cluster.Known(facts).WithMalformed(malformed)
}

// eachItem hands on the objects page by page.
func (r *Reading) eachItem(ctx context.Context, objects client.ObjectList, namespace string, selector labels.Selector, each func(runtime.Object) error) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, ok := objects.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", objects)
		}
		err := r.client.List(ctx, page, &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: options.Limit, Continue: options.Continue})
		return page, err
	})
	pages.PageSize = pageSize
	return pages.EachListItem(ctx, metav1.ListOptions{}, each)
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

// get reads objects of a kind by their keys; those that do not exist are left out.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reading, keys []client.ObjectKey) cluster.Facts[T] {
	facts := map[string]*T{}
	for _, key := range keys {
		object := P(new(T))
		name := r.resourceName(object)
		r.progress(name)
		err := r.client.Get(ctx, key, object)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return cluster.Unknown[T](r.note("get", name+" "+key.Name, key.Namespace, err))
		default:
			object.SetManagedFields(nil)
			facts[keyOf(key)] = (*T)(object)
		}
	}
	return cluster.Known(facts)
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
	return reason
}
