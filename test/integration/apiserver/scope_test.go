package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workspaceDeployment is a Workspace's own, with copies of the Workspace's labels, warmpool.sh/pool among them. Its
// operator makes it anew whenever the live template differs from its own.
func workspaceDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	pod := workspacePod("gpu-a", gpu)
	delete(pod.Labels, "pod-template-hash")
	one := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "workspace-alpha", Labels: pod.Labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{workspaceLabel: "alpha"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
}

func TestOtherLevelsAreNeverSent(t *testing.T) {
	u := newUser(t)
	namespace := u.namespace(t)
	t.Run("a Workspace's Deployment", func(t *testing.T) {
		byTemplate := workspaceDeployment(t)
		byTemplate.Labels = map[string]string{poolLabel: "gpu-a"}
		byPriority := workspaceDeployment(t)
		byPriority.Spec.Template.Spec.PriorityClassName = "overprovisioning-placeholder"
		for _, d := range []*appsv1.Deployment{workspaceDeployment(t), byTemplate, byPriority} {
			neverAsked(t, func() {
				o := u.create(t, u.namespace(t), d)
				o.same(t)
				assert.Empty(t, o.warnings)
				got, ok := o.got.(*appsv1.Deployment)
				require.True(t, ok)
				got.Spec.Template.Annotations = map[string]string{"restarted": "now"}
				updated, err := u.AppsV1().Deployments(got.Namespace).Update(t.Context(), got, metav1.UpdateOptions{})
				require.NoError(t, err)
				got.Generation = updated.Generation
				sameObject(t, got, updated)
			})
		}
	})
	t.Run("ReplicaSets and what else has pods", func(t *testing.T) {
		for _, owner := range []*appsv1.Deployment{workspaceDeployment(t), complete(t), placeholder(t, "gpu-a", gpu)} {
			set := &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{GenerateName: owner.Name + "-", Labels: owner.Labels,
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: owner.Name, UID: "u"}}},
				Spec: appsv1.ReplicaSetSpec{Selector: owner.Spec.Selector, Template: owner.Spec.Template},
			}
			neverAsked(t, func() {
				want, err := u.AppsV1().ReplicaSets("kube-system").Create(t.Context(), set, dryRun)
				require.NoError(t, err)
				got, err := u.AppsV1().ReplicaSets(namespace).Create(t.Context(), set, metav1.CreateOptions{})
				require.NoError(t, err)
				sameObject(t, want, got)
				_, err = u.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: set.ObjectMeta,
					Spec: appsv1.StatefulSetSpec{Selector: owner.Spec.Selector, Template: owner.Spec.Template}}, metav1.CreateOptions{})
				require.NoError(t, err)
				job := &batchv1.Job{ObjectMeta: set.ObjectMeta, Spec: batchv1.JobSpec{Template: *owner.Spec.Template.DeepCopy()}}
				job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
				_, err = u.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{})
				require.NoError(t, err)
			})
		}
	})
	t.Run("pods and Deployments of others", func(t *testing.T) {
		ofPlaceholder := workspacePod("gpu-a", gpu)
		ofPlaceholder.Labels = map[string]string{"app": "spaces-placeholder", "type": "gpu", poolLabel: "gpu-a"}
		ofPlaceholder.Spec.PriorityClassName = "overprovisioning-placeholder"
		web := complete(t)
		web.Name, web.Labels = "web", map[string]string{"app": "web"}
		web.Spec.Template.Spec.PriorityClassName = ""
		web.Spec.Template.Spec.Affinity = nil
		neverAsked(t, func() {
			u.create(t, namespace, ofPlaceholder).same(t)
			u.create(t, namespace, web).same(t)
		})
	})
}

// Each mark alone makes a Deployment a placeholder.
func TestMarksOfPlaceholders(t *testing.T) {
	u := newUser(t)
	for name, mark := range map[string]func(*appsv1.Deployment){
		"pool label":    func(d *appsv1.Deployment) { d.Labels = map[string]string{poolLabel: "gpu-a"} },
		"app label":     func(d *appsv1.Deployment) { d.Labels = map[string]string{"app": "spaces-overprovisioning"} },
		"PriorityClass": func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "overprovisioning-placeholder" },
	} {
		t.Run(name, func(t *testing.T) {
			d := complete(t)
			d.Labels = nil
			d.Spec.Template.Spec.PriorityClassName = ""
			mark(d)
			o := u.create(t, u.namespace(t), d)
			o.spec.PriorityClassName = "overprovisioning-placeholder"
			o.same(t)

			d.Spec.Template.Spec.InitContainers[0].Command = nil
			denied(t, u.create(t, u.namespace(t), d).err, cause{commandField, ""})
		})
	}
}

// The cluster's own namespace and warmpool's are left out by the name label that every namespace has.
func TestExcludedNamespaces(t *testing.T) {
	u := newUser(t)
	bad := placeholder(t, "gpu-a", gpu)
	bad.GenerateName, bad.Name = "test-", ""
	bad.Spec.Template.Spec.Affinity = nil
	pod := workspacePod("gpu-a", gpu)
	pod.Spec = *restricted(t)
	for _, namespace := range []string{"kube-system", "warmpool-system"} {
		t.Run(namespace, func(t *testing.T) {
			neverAsked(t, func() {
				o := u.create(t, namespace, pod)
				o.same(t)
				assert.NoError(t, admin.Delete(t.Context(), o.got))
				o = u.create(t, namespace, bad)
				o.same(t)
				assert.NoError(t, admin.Delete(t.Context(), o.got))
			})
		})
	}
	t.Run("another with labels like theirs", func(t *testing.T) {
		ns, err := u.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "test-", Labels: map[string]string{"name": "kube-system", "control-plane": "true"}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		before := asked(t)
		require.NoError(t, u.create(t, ns.Name, pod).err)
		require.Error(t, u.create(t, ns.Name, bad).err)
		assert.Greater(t, asked(t), before)
	})
}

// restricted is a pod spec that the strictest Pod Security level admits.
func restricted(t *testing.T) *corev1.PodSpec {
	t.Helper()
	return fromYAML[*corev1.PodSpec](t, `
securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
containers:
- name: workspace
  image: example.com/notebook:1
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`)
}
