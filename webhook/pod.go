package webhook

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is what rules read of a Workspace pod. A pod has far more: to decode all of it would be half of what its admission
// takes. A rule that reads another field needs it here; the test of its cases says so.
type pod struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		InitContainers    []container                  `json:"initContainers"`
		Containers        []container                  `json:"containers"`
		NodeSelector      map[string]string            `json:"nodeSelector"`
		NodeName          string                       `json:"nodeName"`
		Affinity          *corev1.Affinity             `json:"affinity"`
		Tolerations       []corev1.Toleration          `json:"tolerations"`
		PriorityClassName string                       `json:"priorityClassName"`
		Priority          *int32                       `json:"priority"`
		PreemptionPolicy  *corev1.PreemptionPolicy     `json:"preemptionPolicy"`
		RuntimeClassName  *string                      `json:"runtimeClassName"`
		Overhead          corev1.ResourceList          `json:"overhead"`
		ResourceClaims    []corev1.PodResourceClaim    `json:"resourceClaims"`
		Resources         *corev1.ResourceRequirements `json:"resources"`
	} `json:"spec"`
}

type container struct {
	Name            string                         `json:"name"`
	Image           string                         `json:"image"`
	ImagePullPolicy corev1.PullPolicy              `json:"imagePullPolicy"`
	RestartPolicy   *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	Resources       corev1.ResourceRequirements    `json:"resources"`
}

// typed makes a Pod of it, as rules take it.
func (p *pod) typed() *corev1.Pod {
	s := &p.Spec
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Metadata.Name, Labels: p.Metadata.Labels},
		Spec: corev1.PodSpec{
			InitContainers: typedContainers(s.InitContainers), Containers: typedContainers(s.Containers),
			NodeSelector: s.NodeSelector, NodeName: s.NodeName, Affinity: s.Affinity, Tolerations: s.Tolerations,
			PriorityClassName: s.PriorityClassName, Priority: s.Priority, PreemptionPolicy: s.PreemptionPolicy,
			RuntimeClassName: s.RuntimeClassName, Overhead: s.Overhead,
			ResourceClaims: s.ResourceClaims, Resources: s.Resources,
		},
	}
}

func typedContainers(all []container) []corev1.Container {
	typed := make([]corev1.Container, len(all))
	for i := range all {
		c := &all[i]
		typed[i] = corev1.Container{
			Name: c.Name, Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, RestartPolicy: c.RestartPolicy,
			Resources: c.Resources,
		}
	}
	return typed
}
