package live

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// watched is a kind of Kubernetes's own and an object for which its informer is asked.
type watched struct {
	source
	object client.Object
}

func (r *Reader) builtinKinds() []watched {
	return []watched{
		builtin(r, "Node", as[corev1.Node], func(s *cluster.Snapshot) *cluster.Facts[corev1.Node] { return &s.Nodes }),
		builtin(r, "Namespace", as[corev1.Namespace], func(s *cluster.Snapshot) *cluster.Facts[corev1.Namespace] { return &s.Namespaces }),
		builtin(r, "LimitRange", as[corev1.LimitRange], func(s *cluster.Snapshot) *cluster.Facts[corev1.LimitRange] { return &s.LimitRanges }),
		builtin(r, "Deployment", placeholderCandidate, func(s *cluster.Snapshot) *cluster.Facts[appsv1.Deployment] { return &s.Deployments }),
		builtin(r, "DaemonSet", countedDaemonSet, func(s *cluster.Snapshot) *cluster.Facts[appsv1.DaemonSet] { return &s.DaemonSets }),
		builtin(r, "RuntimeClass", as[nodev1.RuntimeClass], func(s *cluster.Snapshot) *cluster.Facts[nodev1.RuntimeClass] { return &s.RuntimeClasses }),
		builtin(r, "PriorityClass", as[schedulingv1.PriorityClass], func(s *cluster.Snapshot) *cluster.Facts[schedulingv1.PriorityClass] { return &s.PriorityClasses }),
	}
}

// followNamespace adds what is read in the placeholders' namespace alone, which the cache is limited to.
func (r *Reader) followNamespace(placeholders string) {
	facts := *r.snapshot.Load()
	facts.QuotaNamespace = placeholders
	r.snapshot.Store(&facts)
	for _, w := range []watched{
		builtin(r, "Pod", as[corev1.Pod], func(s *cluster.Snapshot) *cluster.Facts[corev1.Pod] { return &s.PlaceholderPods }),
		builtin(r, "ResourceQuota", as[corev1.ResourceQuota], func(s *cluster.Snapshot) *cluster.Facts[corev1.ResourceQuota] { return &s.ResourceQuotas }),
	} {
		w.source = notAwaited{w.source}
		w.reset(notSynced, false)
		r.builtin = append(r.builtin, w)
	}
	r.rebuild()
}

// notAwaited is a kind that no denial rests on: where it cannot be read, warmpool is ready all the same.
type notAwaited struct{ source }

func (n notAwaited) refresh(next *cluster.Snapshot) (changed, settled bool) {
	changed, _ = n.source.refresh(next)
	return changed, true
}

func (r *Reader) customKinds() []*custom {
	return []*custom{
		follows(r, cluster.NodePoolGroupKind, cluster.NodePoolFrom, func(s *cluster.Snapshot) *cluster.Facts[cluster.NodePool] { return &s.NodePools }),
		follows(r, cluster.NodeClaimGroupKind, cluster.NodeClaimFrom, func(s *cluster.Snapshot) *cluster.Facts[cluster.NodeClaim] { return &s.NodeClaims }),
		follows(r, cluster.WorkspaceTemplateGroupKind, cluster.WorkspaceTemplateFrom, func(s *cluster.Snapshot) *cluster.Facts[cluster.WorkspaceTemplate] { return &s.Templates }),
	}
}

func builtin[T any, P interface {
	*T
	client.Object
}](r *Reader, name string, convert func(any) (*T, error), facts func(*cluster.Snapshot) *cluster.Facts[T]) watched {
	return watched{
		source: &kind[T]{name: name, log: r.log, changed: r.signal, convert: convert, same: sameObject[T, P], facts: facts},
		object: P(new(T)),
	}
}

func follows[T any](r *Reader, kindOf schema.GroupKind, read func(map[string]any) (*T, error), facts func(*cluster.Snapshot) *cluster.Facts[T]) *custom {
	return &custom{
		kind:   kindOf,
		source: &kind[T]{name: kindOf.Kind, log: r.log, changed: r.signal, convert: from(read), same: sameContent[T], facts: facts},
	}
}

func as[T any](obj any) (*T, error) {
	typed, ok := obj.(*T)
	if !ok {
		return nil, fmt.Errorf("got %T", obj)
	}
	if isTooLarge(obj) {
		return nil, errTooLarge
	}
	return typed, nil
}

// countedDaemonSet leaves out what is too large: whoever makes such a DaemonSet must not have the sizes of all pools be
// not verified.
func countedDaemonSet(obj any) (*appsv1.DaemonSet, error) {
	daemonSet, err := as[appsv1.DaemonSet](obj)
	if errors.Is(err, errTooLarge) {
		return nil, nil
	}
	return daemonSet, err
}

func placeholderCandidate(obj any) (*appsv1.Deployment, error) {
	deployment, err := as[appsv1.Deployment](obj)
	if err != nil || stripped(deployment) {
		return nil, err
	}
	return deployment, nil
}

func from[T any](read func(map[string]any) (*T, error)) func(any) (*T, error) {
	return func(obj any) (*T, error) {
		u, err := as[unstructured.Unstructured](obj)
		if err != nil {
			return nil, err
		}
		return read(u.Object)
	}
}
