package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Workload is something that makes pods and is no Deployment, such as a StatefulSet.
type Workload struct {
	Kind, Namespace, Name string
	Labels                map[string]string
	// PodLabels and PodSpec are those of its pods.
	PodLabels map[string]string
	PodSpec   *corev1.PodSpec
}

// Key is the key of the Workload in the Snapshot: kinds may share names.
func (w *Workload) Key() string { return w.Kind + "/" + w.Namespace + "/" + w.Name }

// WorkloadFrom reads a Workload from its JSON content as unstructured maps. It is nil for one that something else controls,
// such as the ReplicaSet of a Deployment, and where the pods cannot be read: nothing but a hint depends on it.
func WorkloadFrom(content map[string]any) *Workload {
	object := &unstructured.Unstructured{Object: content}
	if metav1.GetControllerOfNoCopy(object) != nil {
		return nil
	}
	path := []string{"spec", "template"}
	if object.GetKind() == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	template, ok, err := unstructured.NestedMap(content, path...)
	if err != nil || !ok {
		return nil
	}
	var pod corev1.PodTemplateSpec
	if _, err := Decode(template, &pod); err != nil {
		return nil
	}
	return &Workload{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Labels: object.GetLabels(),
		PodLabels: pod.Labels, PodSpec: &pod.Spec,
	}
}
