package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
)

// Of quotas what limits pods is kept; counts of other objects would make a new Snapshot with each of them.
func TestStripQuota(t *testing.T) {
	list := func(names ...corev1.ResourceName) corev1.ResourceList {
		all := corev1.ResourceList{}
		for _, name := range names {
			all[name] = resource.MustParse("1")
		}
		return all
	}
	ofPods := []corev1.ResourceName{"pods", "count/pods", "cpu", "limits.memory", "requests.nvidia.com/gpu", "hugepages-2Mi"}
	all := append([]corev1.ResourceName{"configmaps", "count/secrets", "requests.storage", "services.loadbalancers"}, ofPods...)
	got := transformed(t, keep(cluster.ResourceQuotas, nil), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "warm", Labels: map[string]string{"a": "b"}},
		Spec:       corev1.ResourceQuotaSpec{Hard: list(all...), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}},
		Status:     corev1.ResourceQuotaStatus{Hard: list(all...), Used: list(all...)},
	})
	assert.Equal(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "warm"},
		Spec:       corev1.ResourceQuotaSpec{Hard: list(ofPods...), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}},
		Status:     corev1.ResourceQuotaStatus{Used: list(ofPods...)},
	}, got)
}

// Of a Deployment's status what says why there are no pods is kept, without times.
func TestStripStatus(t *testing.T) {
	got := transformed(t, keep(cluster.Deployments, nil), &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 2, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue},
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "m", LastUpdateTime: metav1.Now()},
	}}})
	assert.Equal(t, appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 2, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "m"},
	}}, got.Status)
}
