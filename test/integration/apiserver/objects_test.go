package apiserver_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	workspaceLabel = "workspace.jupyter.org/workspace-name"
	poolLabel      = "warmpool.sh/pool"
	gpu            = corev1.ResourceName("nvidia.com/gpu")
)

// fromYAML decodes a part of an object; unknown fields fail the test.
func fromYAML[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out), text)
	return out
}

// workspacePod is a pod as the ReplicaSet of a Workspace's Deployment makes it: with a generated name, without a
// namespace, and with copies of the Workspace's labels.
func workspacePod(pool string, devices ...corev1.ResourceName) *corev1.Pod {
	controller := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "workspace-alpha-6d4d47769d-",
			Labels: map[string]string{
				"app": "jupyter", "pod-template-hash": "6d4d47769d", "kueue.x-k8s.io/queue-name": "team-a-localqueue",
				"workspace.jupyter.org/component": "workspace", workspaceLabel: "alpha",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "workspace-alpha-6d4d47769d",
				UID: "717e9482-4fdd-4c24-8139-fca78f504449", Controller: &controller, BlockOwnerDeletion: &controller,
			}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "workspace", Image: "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu",
			Resources: corev1.ResourceRequirements{Limits: list(devices...)},
		}}},
	}
	if pool != "" {
		pod.Labels[poolLabel] = pool
	}
	return pod
}

// list is a resource list with one of each.
func list(devices ...corev1.ResourceName) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, name := range devices {
		l[name] = resource.MustParse("1")
	}
	return l
}

// placeholder is a placeholder that has all that warmpool would fill, but for the pool's node affinity and tolerations.
func placeholder(t *testing.T, pool string, devices ...corev1.ResourceName) *appsv1.Deployment {
	t.Helper()
	d := fromYAML[appsv1.Deployment](t, `
metadata:
  name: ph
  labels: {app: spaces-overprovisioning}
spec:
  replicas: 3
  selector: {matchLabels: {app: ph}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  template:
    metadata:
      labels: {app: ph, tier: warm}
      annotations: {karpenter.sh/do-not-disrupt: "true"}
    spec:
      priorityClassName: overprovisioning-placeholder
      terminationGracePeriodSeconds: 0
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: ph}}}
      initContainers:
      - name: pull-workspace-image
        image: public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu
        command: [sh, -c, "true"]
        securityContext: &restricted {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      containers:
      - name: pause
        image: registry.k8s.io/pause:3.10.1
        securityContext: *restricted
        resources: {limits: {cpu: "2", memory: 8Gi}}
`)
	maps.Copy(d.Spec.Template.Spec.Containers[0].Resources.Limits, list(devices...))
	if slices.ContainsFunc(devices, func(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), "aws.amazon.com/neuron") }) {
		d.Spec.Template.Spec.InitContainers[0].Image = neuronImage
	}
	if pool != "" {
		d.Labels[poolLabel] = pool
	}
	return &d
}

// Images of the WorkspaceTemplates of the example cluster.
const (
	cpuImage    = "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu"
	neuronImage = "111122223333.dkr.ecr.us-west-2.amazonaws.com/jupyter-neuron:1.4.0"
)

// complete is a placeholder of pool gpu-a to which warmpool adds nothing.
func complete(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := placeholder(t, "gpu-a", gpu)
	spec := &d.Spec.Template.Spec
	spec.Affinity.NodeAffinity = fromYAML[*corev1.NodeAffinity](t, requiredTerm(gpuA))
	spec.Tolerations = fromYAML[[]corev1.Toleration](t, gpuATolerations)
	return d
}

const (
	gpuA              = `{key: karpenter.sh/nodepool, operator: In, values: [gpu-a]}`
	gpuATolerations   = `[{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}, {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}]`
	antiAffinityField = "spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	nodeAffinityField = "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
)

// requiredTerm is node affinity with one required term of the expressions.
func requiredTerm(expressions string) string {
	return `{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [` + expressions + `]}]}}`
}

// subject makes an object of one of the two kinds that warmpool changes.
type subject struct {
	name string
	make func(t *testing.T, pool string, devices ...corev1.ResourceName) (client.Object, *corev1.PodSpec)
}

// subjects are for what must hold of Workspace pods and of placeholders' templates alike.
var subjects = []subject{
	{"pod", func(_ *testing.T, pool string, devices ...corev1.ResourceName) (client.Object, *corev1.PodSpec) {
		pod := workspacePod(pool, devices...)
		return pod, &pod.Spec
	}},
	{"placeholder", func(t *testing.T, pool string, devices ...corev1.ResourceName) (client.Object, *corev1.PodSpec) {
		t.Helper()
		d := placeholder(t, pool, devices...)
		return d, &d.Spec.Template.Spec
	}},
}
