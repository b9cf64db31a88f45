package warmlabels

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/prepull"
)

const (
	one = "registry.example/nb:1"
	two = "registry.example/nb:2"
)

// ended, running and waits are statuses of a container; last tells how its run before ended.
func ended(code int32, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func waits(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func last(s corev1.ContainerStatus, code int32, reason string, restarts int32) corev1.ContainerStatus {
	s.LastTerminationState, s.RestartCount = ended(code, reason).State, restarts
	return s
}

// pulls is a pod on a node that pulls image one with this status, then image two with the next, and so on.
func pulls(statuses ...corev1.ContainerStatus) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for i, status := range statuses {
		status.Name = prepull.ContainerName(i)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: status.Name, Image: []string{one, two}[i]})
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
	}
	return pod
}

// runs is a pod on a node whose main container has image one and this status.
func runs(phase corev1.PodPhase, status corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "hold", Image: one}}},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{named("hold", status)}},
	}
}

func named(name string, status corev1.ContainerStatus) corev1.ContainerStatus {
	status.Name = name
	return status
}

func withVolume(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "nb", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: two}}}}
	return pod
}

func labelled(pod *corev1.Pod, value string) *corev1.Pod {
	pod.Labels = map[string]string{prepull.WarmLabel: value}
	return pod
}

func changed(pod *corev1.Pod, f func(*corev1.Pod)) *corev1.Pod {
	f(pod)
	return pod
}

func TestDecide(t *testing.T) {
	initializing := waits("PodInitializing")
	tests := []struct {
		name   string
		pod    *corev1.Pod
		want   state
		images []string
	}{
		{name: "no node", pod: changed(pulls(corev1.ContainerStatus{}), func(p *corev1.Pod) { p.Spec.NodeName = "" }), want: pending},
		{name: "no status yet", pod: changed(pulls(running()), func(p *corev1.Pod) { p.Status.InitContainerStatuses = nil }), want: pulling},
		{name: "waits", pod: pulls(initializing), want: pulling},
		{name: "runs", pod: pulls(running()), want: pulling},
		{name: "ended well", pod: pulls(ended(0, "Completed")), want: warm, images: []string{one}},
		{name: "first of two", pod: pulls(ended(0, "Completed"), initializing), want: pulling, images: []string{one}},
		{name: "both", pod: pulls(ended(0, "Completed"), ended(0, "Completed")), want: warm, images: []string{one, two}},

		{name: "cannot be started", pod: pulls(ended(128, "StartError")), want: warm, images: []string{one}},
		{name: "cannot be started, in dockershim's words", pod: pulls(ended(127, "ContainerCannotRun")), want: warm, images: []string{one}},
		{name: "just could not be started", pod: pulls(waits("RunContainerError")), want: warm, images: []string{one}},
		{name: "cannot be started and backs off", pod: pulls(last(waits("CrashLoopBackOff"), 128, "StartError", 3)), want: warm, images: []string{one}},
		{name: "cannot be started, so the second is never pulled", pod: pulls(last(waits("CrashLoopBackOff"), 128, "StartError", 3), initializing), want: failed, images: []string{one}},
		{name: "just cannot be started, before the second", pod: pulls(ended(128, "StartError"), initializing), want: pulling, images: []string{one}},
		{name: "started before, pulled again", pod: pulls(last(waits("ImagePullBackOff"), 128, "StartError", 3)), want: failed},

		{name: "ended badly once", pod: pulls(ended(1, "Error")), want: pulling},
		{name: "ends badly and backs off", pod: pulls(last(waits("CrashLoopBackOff"), 1, "Error", 0)), want: failed},
		{name: "ended badly and runs again", pod: pulls(last(running(), 1, "Error", 1)), want: failed},
		{name: "ended badly again", pod: pulls(last(ended(1, "Error"), 1, "Error", 1)), want: failed},
		{name: "ended badly, then well", pod: pulls(last(ended(0, "Completed"), 1, "Error", 2)), want: warm, images: []string{one}},
		{name: "out of memory, then again", pod: pulls(last(waits("CrashLoopBackOff"), 137, "OOMKilled", 2)), want: failed},

		{name: "one failed pull", pod: pulls(waits("ErrImagePull")), want: pulling},
		{name: "one failed pull of a warm pod's image", pod: labelled(pulls(waits("ErrImagePull")), prepull.WarmTrue), want: pulling},
		{name: "one more failed pull", pod: labelled(pulls(waits("ErrImagePull")), prepull.WarmFailed), want: failed},
		{name: "one more with an unreachable registry", pod: labelled(pulls(waits("RegistryUnavailable")), prepull.WarmFailed), want: failed},
		{name: "failed by mistake", pod: labelled(pulls(initializing), prepull.WarmFailed), want: pulling},
		{name: "backs off", pod: pulls(waits("ImagePullBackOff")), want: failed},
		{name: "no image name", pod: pulls(waits("InvalidImageName")), want: failed},
		{name: "may not be pulled", pod: pulls(waits("ErrImageNeverPull")), want: failed},
		{name: "may not run as root", pod: pulls(waits("CreateContainerConfigError")), want: failed},
		{name: "has no command", pod: pulls(waits("CreateContainerError")), want: failed},
		{name: "second cannot be pulled", pod: pulls(ended(0, "Completed"), waits("ImagePullBackOff")), want: failed, images: []string{one}},

		{name: "init containers run again", pod: pulls(last(running(), 0, "Completed", 1)), want: pulling},
		{name: "init containers are to run again", pod: pulls(last(initializing, 0, "Completed", 1)), want: pulling},
		{name: "init containers are to run again that could not", pod: pulls(last(initializing, 128, "StartError", 0)), want: pulling},

		{name: "pulls nothing", pod: pulls(), want: pulling},
		{name: "pulls nothing and runs", pod: changed(pulls(), func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), want: warm},
		{name: "others prove their own images alone", pod: changed(pulls(initializing), func(p *corev1.Pod) {
			other := ended(0, "Completed")
			other.Name = "mine"
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "mine", Image: two})
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, other)
		}), want: pulling, images: []string{two}},
		{name: "others fail", pod: changed(pulls(ended(0, "Completed")), func(p *corev1.Pod) {
			other := waits("ImagePullBackOff")
			other.Name = "mine"
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, other)
		}), want: warm, images: []string{one}},
		{name: "the same image twice", pod: changed(pulls(ended(0, "Completed"), ended(0, "Completed")), func(p *corev1.Pod) {
			p.Spec.InitContainers[1].Image = one
		}), want: warm, images: []string{one}},
		{name: "a sidecar runs", pod: changed(pulls(running()), func(p *corev1.Pod) {
			p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}), want: warm, images: []string{one}},

		{name: "main container runs", pod: runs(corev1.PodRunning, running()), want: warm, images: []string{one}},
		{name: "main container waits", pod: runs(corev1.PodPending, waits("ContainerCreating")), want: pulling},
		{name: "main container has no status yet", pod: changed(runs(corev1.PodPending, waits("")), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }), want: pulling},
		{name: "main container ended", pod: runs(corev1.PodRunning, ended(1, "Error")), want: warm, images: []string{one}},
		{name: "main container ends again and again", pod: runs(corev1.PodRunning, last(waits("CrashLoopBackOff"), 1, "Error", 3)), want: warm, images: []string{one}},
		{name: "main container cannot be started", pod: runs(corev1.PodPending, waits("RunContainerError")), want: pulling, images: []string{one}},
		{name: "main container's image cannot be pulled", pod: runs(corev1.PodPending, waits("ImagePullBackOff")), want: failed},
		{name: "main container's image is gone and cannot be pulled again", pod: runs(corev1.PodRunning, last(waits("ImagePullBackOff"), 1, "Error", 3)), want: warm},
		{name: "main container after the init containers", pod: changed(pulls(ended(0, "Completed")), func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "hold", Image: two}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{named("hold", waits("PodInitializing"))}
		}), want: warm, images: []string{one}},
		{name: "a pause image is of no use", pod: changed(runs(corev1.PodRunning, running()), func(p *corev1.Pod) {
			p.Spec.Containers[0].Image = "registry.k8s.io/pause:3.10"
		}), want: warm},
		{name: "image volume before the pod runs", pod: withVolume(runs(corev1.PodPending, waits("ContainerCreating"))), want: pulling},
		{name: "image volume of a pod that runs", pod: withVolume(runs(corev1.PodRunning, running())), want: warm, images: []string{one, two}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := map[string]string{}
			for _, image := range test.images {
				want[prepull.ImageLabel(image)] = "true"
			}
			switch test.want {
			case warm:
				want[prepull.WarmLabel] = "true"
			case failed:
				want[prepull.WarmLabel] = "failed"
			case pending, pulling:
			}
			got, labels := decide(test.pod)
			assert.Equal(t, test.want, got)
			assert.Equal(t, want, labels)
		})
	}
}

func TestDifference(t *testing.T) {
	have := map[string]string{"app": "x", prepull.WarmLabel: "failed", prepull.ImageLabel(one): "true", "image.warmpool.sh/mine": "1", "warmpool.sh/pool": "cpu"}
	wanted := map[string]string{prepull.WarmLabel: "true", prepull.ImageLabel(two): "true"}
	assert.Equal(t, map[string]*string{
		prepull.WarmLabel: new("true"), prepull.ImageLabel(two): new("true"), prepull.ImageLabel(one): nil, "image.warmpool.sh/mine": nil,
	}, difference(have, wanted))
	assert.Empty(t, difference(wanted, wanted))
	assert.Empty(t, difference(nil, nil))
}

// FuzzDecide holds decide to what it promises for any status that a kubelet, or whoever may write one, comes up with.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		pod := randomPod(rand.New(rand.NewPCG(seed, 0)))
		before := pod.DeepCopy()
		at, wanted := decide(pod)
		assert.Equal(t, before, pod, "the pod stays as it is")
		assert.Equal(t, at == warm, wanted[prepull.WarmLabel] == prepull.WarmTrue)
		assert.Equal(t, at == failed, wanted[prepull.WarmLabel] == prepull.WarmFailed)
		pulled := map[string]bool{}
		for _, image := range prepull.Present(&pod.Spec) {
			pulled[prepull.ImageLabel(image)] = true
		}
		for _, image := range prepull.Pulled(pod.Spec.InitContainers) {
			assert.False(t, at == warm && image != "" && wanted[prepull.ImageLabel(image)] == "", "a warm pod has all its images")
		}
		for key := range wanted {
			assert.True(t, key == prepull.WarmLabel || pulled[key], "a label for an image that no one pulls: %s", key)
		}
		for key, value := range difference(pod.Labels, wanted) {
			if pod.Labels == nil {
				pod.Labels = map[string]string{}
			}
			if delete(pod.Labels, key); value != nil {
				pod.Labels[key] = *value
			}
		}
		again, same := decide(pod)
		assert.Equal(t, at, again)
		assert.Equal(t, wanted, same)
		assert.Empty(t, difference(pod.Labels, same), "a second look changes nothing")
		assert.Equal(t, before.Labels["app"], pod.Labels["app"])
	})
}

func randomPod(r *rand.Rand) *corev1.Pod {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	condition := func() (s corev1.ContainerState) {
		switch r.IntN(4) {
		case 0:
			s.Waiting = waits(pick("PodInitializing", "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff", "RunContainerError", "CreateContainerError", "")).State.Waiting
		case 1:
			s.Terminated = ended(int32(r.IntN(3)), pick("Completed", "Error", "StartError", "ContainerCannotRun")).State.Terminated
		case 2:
			s.Running = &corev1.ContainerStateRunning{}
		}
		return s
	}
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: pick("", "n", "n")},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(pick("Pending", "Running", ""))},
	}
	for _, name := range []string{prepull.Name, prepull.Name + "-2", prepull.Name + "-3", "mine", prepull.Name + "-02"} {
		if r.IntN(2) == 0 {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name, Image: pick(one, two, "", strings.Repeat("x", 300))})
		}
		if r.IntN(3) > 0 {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
				Name: name, State: condition(), LastTerminationState: condition(), RestartCount: int32(r.IntN(3)),
			})
		}
	}
	for _, name := range []string{"hold", "other"} {
		if r.IntN(2) == 0 {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: pick(one, two, "", "r.example/pause:1")})
		}
		if r.IntN(3) > 0 {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: condition(), LastTerminationState: condition()})
		}
	}
	if r.IntN(2) == 0 {
		pod = withVolume(pod)
	}
	if r.IntN(2) == 0 {
		pod.Labels = map[string]string{"app": "x", prepull.WarmLabel: pick("true", "failed", "other"), prepull.ImageLabel(pick(one, two, "gone")): pick("true", "false")}
	}
	return pod
}
