package simulation

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet plays those of all nodes: pods start one container after another, each when its image is on the node, and end
// at once when they are asked to.
type kubelet struct {
	ctx    context.Context
	client client.Client
	delays Delays
	log    io.Writer
	images *imageStore
	pods   sync.WaitGroup

	mu      sync.Mutex
	running map[types.UID]context.CancelFunc
}

func newKubelet(ctx context.Context, admin client.Client, delays Delays, log io.Writer) *kubelet {
	return &kubelet{ctx: ctx, client: admin, delays: delays, log: log, images: newImageStore(), running: map[types.UID]context.CancelFunc{}}
}

// sync is told of a pod that is bound to a node.
func (k *kubelet) sync(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	end, known := k.running[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil:
		if known {
			end()
		}
		k.do(pod, k.remove)
	case !known && pod.Status.Phase == corev1.PodPending:
		ctx, end := context.WithCancel(k.ctx)
		k.running[pod.UID] = end
		k.do(pod, func(_ context.Context, pod *corev1.Pod) error { return k.run(ctx, pod) })
	}
}

// forget is told of a pod that is gone.
func (k *kubelet) forget(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if end, known := k.running[pod.UID]; known {
		end()
		delete(k.running, pod.UID)
	}
}

// do does something about a pod, which may be gone meanwhile.
func (k *kubelet) do(pod *corev1.Pod, what func(context.Context, *corev1.Pod) error) {
	pod = pod.DeepCopy()
	k.pods.Go(func() {
		err := what(k.ctx, pod)
		if err != nil && k.ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			_, _ = fmt.Fprintf(k.log, "kubelet of %s: pod %s/%s: %v\n", pod.Spec.NodeName, pod.Namespace, pod.Name, err)
		}
	})
}

func (k *kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	return k.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
}

// run starts the containers of a pod, until ctx ends.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod) error {
	write := func() error { return k.write(ctx, pod) }
	begin(&pod.Status, &pod.Spec)
	if err := write(); err != nil {
		return err
	}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if !k.pull(ctx, pod, container) {
			return nil
		}
		finish(&pod.Status.InitContainerStatuses[i], container)
		if err := write(); err != nil {
			return err
		}
	}
	for i := range pod.Spec.Containers {
		if !k.pull(ctx, pod, &pod.Spec.Containers[i]) {
			return nil
		}
	}
	if !after(ctx, k.delays.Start) {
		return nil
	}
	for i := range pod.Spec.Containers {
		runs(&pod.Status.ContainerStatuses[i], &pod.Spec.Containers[i])
	}
	ready(&pod.Status)
	return write()
}

// write writes what has changed of the status. No one else writes these fields.
func (k *kubelet) write(ctx context.Context, pod *corev1.Pod) error {
	var now corev1.Pod
	if err := k.client.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
		return ignoreEnd(ctx, err)
	}
	if now.UID != pod.UID || now.DeletionTimestamp != nil {
		return nil
	}
	before := now.DeepCopy()
	status := pod.Status.DeepCopy()
	for i := range now.Status.Conditions { // PodScheduled, and whatever others have added
		if c := &now.Status.Conditions[i]; !owned[c.Type] {
			status.Conditions = append(status.Conditions, *c)
		}
	}
	now.Status = *status
	return ignoreEnd(ctx, k.client.Status().Patch(ctx, &now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// pull waits until the container's image is on the node; it says no when the pod has ended before.
func (k *kubelet) pull(ctx context.Context, pod *corev1.Pod, container *corev1.Container) bool {
	image := container.Image
	if k.images.has(pod.Spec.NodeName, image) {
		k.event(pod, container, "Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", image))
		return true
	}
	k.event(pod, container, "Pulling", fmt.Sprintf("Pulling image %q", image))
	began := time.Now()
	own, ok := k.images.pull(ctx, pod.Spec.NodeName, image, time.Duration(imageGB(image)*float64(k.delays.PullGB)))
	if !ok {
		return false
	}
	if err := k.reportImages(ctx, pod.Spec.NodeName); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		_, _ = fmt.Fprintf(k.log, "kubelet of %s: report images: %v\n", pod.Spec.NodeName, err)
	}
	k.event(pod, container, "Pulled", fmt.Sprintf("Successfully pulled image %q in %s (%s including waiting). Image size: %.0f bytes.",
		image, own.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), imageGB(image)*1e9))
	return true
}

// reportImages writes the node's images to its status: the scheduler's plugin ImageLocality goes by them.
func (k *kubelet) reportImages(ctx context.Context, name string) error {
	var node corev1.Node
	if err := k.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return err
	}
	before := node.DeepCopy()
	node.Status.Images = nil
	for _, image := range k.images.on(name) {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{image}, SizeBytes: int64(imageGB(image) * 1e9)})
	}
	return k.client.Status().Patch(ctx, &node, client.MergeFrom(before))
}

// event is the one that a kubelet writes.
func (k *kubelet) event(pod *corev1.Pod, container *corev1.Container, reason, message string) {
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, FieldPath: "spec.containers{" + container.Name + "}",
		},
		Reason: reason, Message: message, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
	}
	k.do(pod, func(ctx context.Context, _ *corev1.Pod) error { return k.client.Create(ctx, event) })
}

// after says no when ctx ends first.
func after(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
