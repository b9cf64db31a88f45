package live

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
)

// What is kept of the objects of a cluster depends on their number and not on their size: whoever may create objects must
// not fill the memory. All bounds are far above what real objects need.
const (
	// maxSent is the size, as the API server sends it, of an object that is decoded by a watch; see Transport.
	maxSent = 128 << 10
	// maxKept is the memory of an object without what no rule reads. Objects without Go types need several times as much.
	maxKept             = 64 << 10
	maxKeptUnstructured = 256 << 10
)

// errTooLarge is why an object is not read.
var errTooLarge = fmt.Errorf("it is larger than what warmpool reads: %d KiB as sent, or %d KiB of what rules go by", maxSent>>10, maxKept>>10)

// tooLarge is an annotation of what is left of an object that is too large. It has no valid name: nobody else can set it.
const tooLarge = "warmpool.sh/too large"

func isTooLarge(obj any) bool {
	object, ok := obj.(metav1.Object)
	if !ok {
		return false
	}
	_, marked := object.GetAnnotations()[tooLarge]
	return marked
}

// bounded is a transform after which an object takes no more memory than maxKept: the one place where that is decided, for
// watches and lists alike. Of an object that is larger only that it is there is left, and of a pod where.
func bounded(transform toolscache.TransformFunc) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		object, ok := obj.(metav1.Object)
		if !ok {
			return transform(obj) // such as the tombstone of a missed deletion
		}
		if isTooLarge(object) {
			return least(object), nil
		}
		kept, err := transform(obj)
		if err != nil {
			return nil, err
		}
		if object, ok = kept.(metav1.Object); ok && size(reflect.ValueOf(object), bound(object)) < 0 {
			return least(object), nil
		}
		return kept, nil
	}
}

func bound(object metav1.Object) int {
	switch object.(type) {
	case *unstructured.Unstructured:
		return maxKeptUnstructured
	case *rbacv1.Role, *rbacv1.RoleBinding, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *corev1.ConfigMap:
		return 4 << 20 // roles are read by the command line alone, ConfigMaps in warmpool's namespaces alone
	default:
		return maxKept
	}
}

// least is what is left of an object that is too large.
func least(object metav1.Object) metav1.Object {
	kept, ok := reflect.TypeAssert[metav1.Object](reflect.New(reflect.TypeOf(object).Elem()))
	if !ok {
		return object // it is a pointer to what has just been an object
	}
	if of, ok := object.(*unstructured.Unstructured); ok {
		to := &unstructured.Unstructured{}
		to.SetGroupVersionKind(of.GroupVersionKind())
		kept = to
	}
	kept.SetNamespace(object.GetNamespace())
	kept.SetName(object.GetName())
	kept.SetUID(object.GetUID())
	kept.SetResourceVersion(object.GetResourceVersion())
	kept.SetCreationTimestamp(object.GetCreationTimestamp())
	kept.SetDeletionTimestamp(object.GetDeletionTimestamp())
	kept.SetAnnotations(map[string]string{tooLarge: ""})
	if pod, ok := kept.(*corev1.Pod); ok {
		if of, ok := object.(*corev1.Pod); ok {
			pod.Spec.NodeName, pod.Status.Phase = of.Spec.NodeName, of.Status.Phase
		}
	}
	return kept
}

// size takes the memory behind a value off a budget, and ends as soon as that is used up.
func size(v reflect.Value, budget int) int {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || v.Type() == location {
			return budget
		}
		return size(v.Elem(), budget-int(v.Elem().Type().Size()))
	case reflect.String:
		return budget - v.Len()
	case reflect.Slice:
		budget -= v.Cap() * int(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return budget
		}
		for i := 0; i < v.Len() && budget >= 0; i++ {
			budget = size(v.Index(i), budget)
		}
	case reflect.Map:
		return sizeOfMap(v, budget)
	case reflect.Struct:
		for i := 0; i < v.NumField() && budget >= 0; i++ {
			budget = size(v.Field(i), budget)
		}
	default:
	}
	return budget
}

func sizeOfMap(v reflect.Value, budget int) int {
	budget -= v.Len() * 2 * int(v.Type().Key().Size()+v.Type().Elem().Size()) // half of a map may be empty
	for entries := v.MapRange(); budget >= 0 && entries.Next(); {
		budget = size(entries.Value(), size(entries.Key(), budget))
	}
	return budget
}

// location is shared by all times.
var location = reflect.TypeFor[*time.Location]()
