package live

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// CacheOptions makes the manager's cache hold only what rules need: in a cluster of 10,000 nodes the rest would fill
// gigabytes. namespace is warmpool's own, placeholders that of the placeholders. candidate tells which Deployments may be
// placeholders; others keep nothing but their name. It must give the same answer for a Deployment without spec and labels,
// unless that answer is no.
func CacheOptions(namespace, placeholders string, candidate func(*appsv1.Deployment) bool) cache.Options {
	objects := map[client.Object]cache.ByObject{&corev1.ConfigMap{}: onlyLastSeen(namespace)}
	for _, k := range cluster.Watched {
		if !k.Describe().IsCustom() {
			objects[newObject(k)] = cache.ByObject{Transform: bounded(keep(k, candidate))}
		}
	}
	for _, k := range cluster.WatchedInNamespace {
		objects[newObject(k)] = cache.ByObject{Namespaces: map[string]cache.Config{placeholders: {}}, Transform: bounded(keep(k, nil))}
	}
	return cache.Options{
		NewInformer:      newInformer(),
		ByObject:         objects,
		DefaultTransform: bounded(keepCustom),
		DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			if apierrors.IsNotFound(err) {
				return // the CRD is gone; discovery notices and says so once
			}
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		},
	}
}

// newObject makes an object of one of Kubernetes' own kinds.
func newObject(k cluster.AnyKind) client.Object {
	object, _ := k.New().(client.Object)
	return object
}

// keep is the transform of a kind. What is no object, such as the tombstone of a missed deletion, passes. candidate is
// CacheOptions'; nil: no Deployment is cut down.
func keep(k cluster.AnyKind, candidate func(*appsv1.Deployment) bool) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if d, ok := obj.(*appsv1.Deployment); ok && candidate != nil && !candidate(d) {
			*d = appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, ResourceVersion: d.ResourceVersion}}
		}
		k.Keep(obj)
		return obj, nil
	}
}

// keepCustom is keep for all custom resources that are watched.
func keepCustom(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		for _, k := range cluster.Watched {
			if k.Describe().GroupKind() == u.GroupVersionKind().GroupKind() {
				k.Keep(u)
			}
		}
	}
	return obj, nil
}
