package policy

import corev1 "k8s.io/api/core/v1"

// The two labels with which HyperPod Task Governance takes over a namespace; each alone does nothing.
const (
	activateQuota = "sagemaker.amazonaws.com/activate-quota"
	managedQueue  = "sagemaker.amazonaws.com/sagemaker-managed-queue"
)

// The labels by which a pod names its kueue queue and its WorkloadPriorityClass.
const (
	queueName     = "kueue.x-k8s.io/queue-name"
	queuePriority = "kueue.x-k8s.io/priority-class"
)

// governed tells which of the labels of Task Governance a namespace has.
func governed(ns *corev1.Namespace) (quota, queue bool) {
	return ns.Labels[activateQuota] == "Enabled", ns.Labels[managedQueue] == "true"
}
