package prepull

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestOnNode(t *testing.T) {
	ended := func(name string, code int32, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
	}
	pod := func(node string, phase corev1.PodPhase, statuses ...corev1.ContainerStatus) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: node, InitContainers: []corev1.Container{{Name: Name, Image: "a"}, {Name: "mine", Image: "m"}, {Name: Name + "-2", Image: "b"}}},
			Status: corev1.PodStatus{Phase: phase, InitContainerStatuses: statuses},
		}
	}
	nothing := func(phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: phase}}
	}
	tests := []struct {
		name   string
		pod    *corev1.Pod
		images []string
		warm   bool
	}{
		{"no status", pod("n", corev1.PodPending), nil, false},
		{"runs, in a file without statuses", pod("n", corev1.PodRunning), []string{"a", "m", "b"}, true},
		{"runs, though a status speaks against it", pod("n", corev1.PodRunning, ended(Name, 1, "Error")), []string{"m", "b"}, false},
		{"one of two", pod("n", corev1.PodPending, ended(Name, 0, "Completed")), []string{"a"}, false},
		{"both, one of which cannot be started", pod("n", corev1.PodPending, ended(Name+"-2", 128, "StartError"), ended(Name, 0, "Completed")), []string{"a", "b"}, true},
		{"one ended badly", pod("n", corev1.PodPending, ended(Name, 0, "Completed"), ended(Name+"-2", 1, "Error")), []string{"a"}, false},
		{"no node", pod("", corev1.PodPending, ended(Name, 0, "Completed"), ended(Name+"-2", 0, "Completed")), []string{"a", "b"}, false},
		{"nothing to pull", nothing(corev1.PodPending), nil, false},
		{"nothing to pull and runs", nothing(corev1.PodRunning), nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			images, warm := OnNode(test.pod)
			assert.Equal(t, test.images, images)
			assert.Equal(t, test.warm, warm)
		})
	}
}
