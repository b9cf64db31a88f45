package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"warmpool.sh/webhook/cluster"
)

// Snapshot makes a cluster of the objects: they are all there is, so every kind is known. Kinds that a Snapshot does
// not hold are left out. What an API server adds of its own is added (defaults.go). No pool has been seen before.
func Snapshot(objects []Object) (*cluster.Snapshot, error) {
	nodes, pools := map[string]*corev1.Node{}, map[string]*cluster.NodePool{}
	classes, namespaces := systemPriorityClasses(), map[string]*corev1.Namespace{}
	templates, deployments := map[string]*cluster.WorkspaceTemplate{}, map[string]*appsv1.Deployment{}
	claims, daemonSets := map[string]*cluster.NodeClaim{}, map[string]*appsv1.DaemonSet{}
	limitRanges, runtimeClasses := map[string]*corev1.LimitRange{}, map[string]*nodev1.RuntimeClass{}
	var errs []error
	for _, o := range objects {
		var err error
		switch o.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "Node"}:
			err = add(nodes, o, node)
		case schema.GroupKind{Kind: "Namespace"}:
			err = add(namespaces, o, namespace)
		case schema.GroupKind{Kind: "LimitRange"}:
			err = add(limitRanges, o, limitRange)
		case schema.GroupKind{Group: nodev1.GroupName, Kind: "RuntimeClass"}:
			err = add(runtimeClasses, o, Typed[nodev1.RuntimeClass])
		case schema.GroupKind{Group: schedulingv1.GroupName, Kind: "PriorityClass"}:
			err = add(classes, o, Typed[schedulingv1.PriorityClass])
		case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
			err = add(deployments, o, Typed[appsv1.Deployment])
		case schema.GroupKind{Group: appsv1.GroupName, Kind: "DaemonSet"}:
			err = add(daemonSets, o, Typed[appsv1.DaemonSet])
		case cluster.NodeClaimGroupKind:
			err = add(claims, o, custom(cluster.NodeClaimFrom))
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
		NodeClaims: cluster.Known(claims), DaemonSets: cluster.Known(daemonSets), LimitRanges: cluster.Known(limitRanges),
		RuntimeClasses: cluster.Known(runtimeClasses), LastSeen: cluster.Known[corev1.Node](nil),
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
