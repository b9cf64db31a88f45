package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"warmpool.sh/webhook/cluster"
)

// Snapshot makes a whole cluster of the objects. Kinds that a Snapshot does not hold are left out. What an API server adds
// of its own is added (defaults.go). No pool has been seen before.
func Snapshot(objects []Object) (*cluster.Snapshot, error) {
	s := newSnapshot()
	kinds := kindsOf(s)
	c := &contents{objects: slices.Clone(objects)}
	for i, o := range c.objects {
		c.objects[i].keep = nil
		if kind, ok := kinds[o.GroupVersionKind().GroupKind()]; ok {
			c.objects[i].keep = kind.read(o)
		}
	}
	if errs, _ := c.keepAll(s, kinds, Options{Strict: true}); len(errs) > 0 {
		return nil, join(errs)
	}
	return s, nil
}

func newSnapshot() *cluster.Snapshot {
	return &cluster.Snapshot{LastSeen: cluster.Known[corev1.Node](nil)}
}

// reading reads the objects of one kind, several at the same time, and makes the facts of those that were kept, one after
// the other, when it is done.
type reading struct {
	read func(Object) (keep func(earlier *Object) error)
	done func(part bool)
}

// kindsOf are the kinds that a Snapshot holds, each with its place there.
func kindsOf(s *cluster.Snapshot) map[schema.GroupKind]reading {
	rbac := func(kind string) schema.GroupKind { return schema.GroupKind{Group: rbacv1.GroupName, Kind: kind} }
	webhooks := func(kind string) schema.GroupKind {
		return schema.GroupKind{Group: admissionregistrationv1.GroupName, Kind: kind}
	}
	kinds := map[schema.GroupKind]reading{
		{Kind: "Node"}:          into(&s.Nodes, node, nil),
		{Kind: "Namespace"}:     into(&s.Namespaces, namespace, nil),
		{Kind: "LimitRange"}:    into(&s.LimitRanges, limitRange, nil),
		{Kind: "ResourceQuota"}: into(&s.ResourceQuotas, Typed[corev1.ResourceQuota], nil),
		{Group: nodev1.GroupName, Kind: "RuntimeClass"}:        into(&s.RuntimeClasses, Typed[nodev1.RuntimeClass], nil),
		{Group: schedulingv1.GroupName, Kind: "PriorityClass"}: into(&s.PriorityClasses, Typed[schedulingv1.PriorityClass], systemPriorityClasses()),
		{Group: appsv1.GroupName, Kind: "Deployment"}:          into(&s.Deployments, Typed[appsv1.Deployment], nil),
		{Group: appsv1.GroupName, Kind: "DaemonSet"}:           into(&s.DaemonSets, Typed[appsv1.DaemonSet], nil),
		cluster.NodeClaimGroupKind:                             into(&s.NodeClaims, custom(cluster.NodeClaimFrom), nil),
		cluster.NodePoolGroupKind:                              into(&s.NodePools, custom(cluster.NodePoolFrom), nil),
		cluster.WorkspaceTemplateGroupKind:                     into(&s.Templates, custom(cluster.WorkspaceTemplateFrom), nil),

		{Kind: "Pod"}:                                            into(&s.Pods, Typed[corev1.Pod], nil),
		{Kind: "PodTemplate"}:                                    into(&s.PodTemplates, Typed[corev1.PodTemplate], nil),
		{Kind: "Service"}:                                        into(&s.Services, Typed[corev1.Service], nil),
		{Kind: "ConfigMap"}:                                      into(&s.ConfigMaps, Typed[corev1.ConfigMap], nil),
		{Kind: "PersistentVolume"}:                               into(&s.Volumes, Typed[corev1.PersistentVolume], nil),
		{Kind: "PersistentVolumeClaim"}:                          into(&s.Claims, Typed[corev1.PersistentVolumeClaim], nil),
		{Group: eventsv1.GroupName, Kind: "Event"}:               into(&s.Events, Typed[eventsv1.Event], nil),
		{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}: into(&s.Budgets, Typed[policyv1.PodDisruptionBudget], nil),
		rbac("Role"):                                             into(&s.Roles, Typed[rbacv1.Role], nil),
		rbac("RoleBinding"):                                      into(&s.RoleBindings, Typed[rbacv1.RoleBinding], nil),
		rbac("ClusterRole"):                                      into(&s.ClusterRoles, Typed[rbacv1.ClusterRole], nil),
		rbac("ClusterRoleBinding"):                               into(&s.ClusterRoleBindings, Typed[rbacv1.ClusterRoleBinding], nil),
		webhooks("MutatingWebhookConfiguration"):                 into(&s.MutatingWebhooks, Typed[admissionregistrationv1.MutatingWebhookConfiguration], nil),
		webhooks("ValidatingWebhookConfiguration"):               into(&s.ValidatingWebhooks, Typed[admissionregistrationv1.ValidatingWebhookConfiguration], nil),
		cluster.CapacityBufferGroupKind:                          into(&s.CapacityBuffers, custom(cluster.CapacityBufferFrom), nil),
		cluster.CertificateGroupKind:                             into(&s.Certificates, custom(cluster.CertificateFrom), nil),
		cluster.WorkloadPriorityClassGroupKind:                   into(&s.WorkloadPriorityClasses, custom(cluster.WorkloadPriorityClassFrom), nil),
	}
	workloads := workloads(&s.Workloads)
	for _, kind := range []schema.GroupKind{
		{Group: appsv1.GroupName, Kind: "StatefulSet"}, {Group: appsv1.GroupName, Kind: "ReplicaSet"}, {Kind: "ReplicationController"},
		{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
	} {
		kinds[kind] = workloads
	}
	return kinds
}

// workloads reads objects of several kinds into one Facts.
func workloads(facts *cluster.Facts[cluster.Workload]) reading {
	found := map[string]*cluster.Workload{}
	return reading{
		read: func(o Object) func(*Object) error {
			w := cluster.WorkloadFrom(o.Object)
			return func(*Object) error {
				if w != nil {
					found[w.Key()] = w
				}
				return nil
			}
		},
		done: func(bool) { *facts = cluster.Known(found) },
	}
}

// into reads objects into facts, beside those that are there anyway.
func into[T any](facts *cluster.Facts[T], read func(Object) (*T, error), anyway map[string]*T) reading {
	d := &definitions[T]{objects: anyway, malformed: map[string]string{}, variants: map[string][]*T{}}
	if d.objects == nil {
		d.objects = map[string]*T{}
	}
	return reading{
		read: func(o Object) func(*Object) error {
			if o.GetKind() == "Pod" && o.GetName() == "" {
				return func(*Object) error { return nil } // one that is still to be created, and not yet part of a cluster
			}
			fact, err := named(o, read)
			return func(earlier *Object) error {
				switch {
				case errors.Is(err, cluster.ErrObsolete):
					d.malformed[key(o)] = err.Error()
					return nil // it could be read; the audit reports it
				case err != nil:
					d.malformed[key(o)] = err.Error()
					return err
				case earlier != nil:
					return d.addAnother(o, earlier, fact)
				default:
					d.objects[key(o)] = fact
					return nil
				}
			}
		},
		done: func(part bool) {
			*facts = cluster.Known(d.objects).WithMalformed(d.malformed).WithVariants(d.variants)
			if part {
				*facts = facts.AsPart()
			}
		},
	}
}

// definitions are the objects of one kind, by key.
type definitions[T any] struct {
	objects   map[string]*T
	malformed map[string]string
	variants  map[string][]*T
}

// addAnother adds a definition of an object that has one. Where they differ, none of them is a fact any more.
func (d *definitions[T]) addAnother(o Object, earlier *Object, fact *T) error {
	k := key(o)
	first := d.objects[k]
	if first != nil && equality.Semantic.DeepEqual(first, fact) {
		return nil
	}
	if first != nil {
		d.variants[k] = append(d.variants[k], first)
		delete(d.objects, k)
	}
	if !slices.ContainsFunc(d.variants[k], func(other *T) bool { return equality.Semantic.DeepEqual(other, fact) }) {
		d.variants[k] = append(d.variants[k], fact)
	}
	if d.malformed[k] == "" {
		d.malformed[k] = fmt.Sprintf("defined in %s and otherwise in %s", place(earlier.File, earlier.Document), place(o.File, o.Document))
	}
	return &twiceError{o, *earlier}
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

func named[T any](o Object, read func(Object) (*T, error)) (*T, error) {
	if o.GetName() == "" {
		return nil, fmt.Errorf("%s: metadata.name: missing; give the object a name", o)
	}
	return read(o)
}

// key is the object's key in the Snapshot.
func key(o Object) string {
	if o.GetNamespace() != "" {
		return o.GetNamespace() + "/" + o.GetName()
	}
	return o.GetName()
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
