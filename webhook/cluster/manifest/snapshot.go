package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"warmpool.sh/webhook/cluster"
)

// Snapshot makes a cluster of the objects: they are all there is, so every kind is known. Kinds that a Snapshot does
// not hold are left out. What an API server adds of its own is added: the system PriorityClasses and the name label
// of Namespaces.
func Snapshot(objects []Object) (*cluster.Snapshot, error) {
	nodes, pools := map[string]*corev1.Node{}, map[string]*cluster.NodePool{}
	classes, namespaces := systemPriorityClasses(), map[string]*corev1.Namespace{}
	templates, deployments := map[string]*cluster.WorkspaceTemplate{}, map[string]*appsv1.Deployment{}
	var errs []error
	for _, o := range objects {
		var err error
		switch o.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "Node"}:
			err = add(nodes, o, Typed[corev1.Node])
		case schema.GroupKind{Kind: "Namespace"}:
			err = add(namespaces, o, namespace)
		case schema.GroupKind{Group: schedulingv1.GroupName, Kind: "PriorityClass"}:
			err = add(classes, o, Typed[schedulingv1.PriorityClass])
		case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
			err = add(deployments, o, Typed[appsv1.Deployment])
		case cluster.NodePoolGroupKind:
			err = add(pools, o, custom(cluster.NodePoolFrom))
		case cluster.WorkspaceTemplateGroupKind:
			err = add(templates, o, custom(cluster.WorkspaceTemplateFrom))
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, join(errs)
	}
	return &cluster.Snapshot{
		Nodes: cluster.Known(nodes), NodePools: cluster.Known(pools), PriorityClasses: cluster.Known(classes),
		Namespaces: cluster.Known(namespaces), Templates: cluster.Known(templates), Deployments: cluster.Known(deployments),
	}, nil
}

// Typed converts an object into its Go type, strictly: fields that the type does not know are errors, except in the
// status, which a cluster newer than warmpool may have written.
func Typed[T any](o Object) (*T, error) {
	typed := new(T)
	if object, ok := any(typed).(runtime.Object); ok {
		kinds, _, err := builtin.ObjectKinds(object)
		if err == nil && !slices.Contains(kinds, o.GroupVersionKind()) {
			return nil, fmt.Errorf("%s: is a %s of %s, want a %s of %s",
				o, o.GetKind(), o.GetAPIVersion(), kinds[0].Kind, kinds[0].GroupVersion())
		}
	}
	unknown, err := cluster.Decode(o.Object, typed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	var errs []error
	for _, err := range unknown {
		var named json.FieldError
		if errors.As(err, &named) && strings.HasPrefix(named.FieldPath(), "status.") {
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %w; correct or remove it", o, err))
	}
	if len(errs) > 0 {
		return nil, join(errs)
	}
	return typed, nil
}

func add[T any](facts map[string]*T, o Object, read func(Object) (*T, error)) error {
	if o.GetName() == "" {
		return fmt.Errorf("%s: metadata.name: missing; give the object a name", o)
	}
	fact, err := read(o)
	if err != nil {
		return err
	}
	key := o.GetName()
	if o.GetNamespace() != "" {
		key = o.GetNamespace() + "/" + key
	}
	facts[key] = fact
	return nil
}

func custom[T any](from func(map[string]any) (*T, error)) func(Object) (*T, error) {
	return func(o Object) (*T, error) {
		fact, err := from(o.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		return fact, nil
	}
}

func namespace(o Object) (*corev1.Namespace, error) {
	ns, err := Typed[corev1.Namespace](o)
	if err != nil {
		return nil, err
	}
	// Namespace selectors go by this label; every API server sets it.
	metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
	return ns, nil
}

// systemPriorityClasses are those that every API server makes at start, with its values.
func systemPriorityClasses() map[string]*schedulingv1.PriorityClass {
	classes := map[string]*schedulingv1.PriorityClass{}
	for name, value := range map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000} {
		classes[name] = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	return classes
}
