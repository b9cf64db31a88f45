package simulation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow tells of an object each time it is seen; gone says that it was for the last time. It returns when all that exist
// have been seen.
func (c *Cluster) follow(ctx context.Context, kind client.Object, seen func(obj any, gone bool)) error {
	informer, err := c.cache.GetInformer(ctx, kind)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen(obj, false) },
		UpdateFunc: func(_, obj any) { seen(obj, false) },
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			seen(obj, true)
		},
	})
	return err
}

func (c *Cluster) node(obj any, gone bool) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	if gone {
		c.kubelet.images.forget(node.Name)
	}
	c.Book.node(node, gone, time.Now())
}

func (c *Cluster) pod(obj any, gone bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	// The book first: what the kubelet does next changes what is on the node.
	c.Book.pod(pod, gone, time.Now(), c.kubelet.images)
	switch {
	case gone:
		c.kubelet.forget(pod)
	case pod.Spec.NodeName != "":
		c.kubelet.sync(pod)
	}
}

func (b *Book) node(node *corev1.Node, gone bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[node.Name]
	if n == nil {
		n = &Node{Name: node.Name, Pool: node.Labels[PoolLabel], Began: now.Add(-b.boot)}
		b.nodes[node.Name] = n
	}
	if gone {
		n.Gone = now
	}
	if n.Ready.IsZero() && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		n.Ready = now
	}
}

func (b *Book) pod(pod *corev1.Pod, gone bool, now time.Time, images *imageStore) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch pod.Namespace {
	case Team:
		b.workspace(pod, now, images)
	case Placeholders:
		b.placeholder(pod, gone, now)
	}
	if reason := disrupted(pod); gone && reason != "" {
		b.events = append(b.events, Eviction{Pod: pod.Name, Node: pod.Spec.NodeName, Workspace: pod.Labels[workspaceLabel], Reason: reason, At: now})
	}
}

func (b *Book) workspace(pod *corev1.Pod, now time.Time, images *imageStore) {
	name := pod.Labels[workspaceLabel]
	if name == "" {
		return
	}
	s := b.byPod[pod.UID]
	if s == nil {
		s = &Startup{Workspace: name, Kind: podKind(pod), Image: pod.Spec.Containers[0].Image, Pod: pod.Name, Created: now}
		b.byPod[pod.UID] = s
		b.starts = append(b.starts, s)
	}
	if node := pod.Spec.NodeName; s.Bound.IsZero() && node != "" {
		s.Node, s.Bound = node, now
		s.Pulled = !images.has(node, s.Image)
		s.Path, s.OnWarm = b.path(s)
		if n := b.nodes[node]; n != nil {
			s.Booted, s.Outside = n.Ready.After(s.Created) || n.Ready.IsZero(), n.Pool != PoolPrefix+s.Kind
		}
	}
	if s.Running.IsZero() && pod.Status.Phase == corev1.PodRunning {
		s.Running = now
	}
}

func (b *Book) placeholder(pod *corev1.Pod, gone bool, now time.Time) {
	if pod.Spec.NodeName == "" {
		return
	}
	s := b.stays[pod.UID]
	if s == nil {
		s = &stay{kind: podKind(pod), node: pod.Spec.NodeName}
		for i := range pod.Spec.InitContainers {
			s.images = append(s.images, pod.Spec.InitContainers[i].Image)
		}
		b.stays[pod.UID] = s
	}
	if s.done.IsZero() && len(pod.Status.InitContainerStatuses) > 0 && !slices.ContainsFunc(pod.Status.InitContainerStatuses, func(i corev1.ContainerStatus) bool {
		return i.State.Terminated == nil
	}) {
		s.done = now
	}
	if (gone || pod.DeletionTimestamp != nil) && s.gone.IsZero() {
		s.gone, s.preempted = now, disrupted(pod) == corev1.PodReasonPreemptionByScheduler
	}
}

// disrupted is why a pod has to make room; empty while it does not.
func disrupted(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
