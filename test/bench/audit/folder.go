package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	separator = "\n---\n"
	perFile   = 200
	teams     = 50
	namespace = "overprovisioning"
)

// size is what the cluster holds.
type size struct{ nodes, pods, placeholders, pools, images int }

// write writes the cluster as manifests, as a dump of it has them, and returns their size in bytes.
func (s size) write(dir string) (int, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	total := 0
	for _, part := range []struct {
		name  string
		count int
		text  func(int) (string, error)
	}{
		{"cluster", 1, func(int) (string, error) { return s.around(), nil }},
		{"pools", s.pools, func(i int) (string, error) { return fmt.Sprintf(poolText, i), nil }},
		{"nodes", s.nodes, func(i int) (string, error) { return text(s.node(i)) }},
		{"workspaces", s.pods, func(i int) (string, error) { return text(s.workspace(i)) }},
		{"placeholders", s.placeholders, s.placeholder},
	} {
		for from := 0; from < part.count; from += perFile {
			var out bytes.Buffer
			for i := from; i < min(from+perFile, part.count); i++ {
				document, err := part.text(i)
				if err != nil {
					return 0, err
				}
				if out.Len() > 0 {
					out.WriteString(separator[1:])
				}
				out.WriteString(document)
			}
			total += out.Len()
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%05d.yaml", part.name, from)), out.Bytes(), 0o600); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

func text(object any) (string, error) {
	data, err := yaml.Marshal(object)
	return string(data), err
}

// around is the configuration and what all pools share.
func (s size) around() string {
	var out strings.Builder
	out.WriteString("apiVersion: config.warmpool.sh/v1alpha1\nkind: WarmPoolConfiguration\npools:\n")
	for i := range s.pools {
		fmt.Fprintf(&out, "- {name: p%[1]d, nodePools: [np-%[1]d], templates: [{namespace: shared, name: t%[1]d}]}\n", i)
	}
	for i := range teams {
		fmt.Fprintf(&out, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team-%d}\n", i)
	}
	return out.String() + separator[1:] + sharedText
}

const sharedText = `apiVersion: v1
kind: Namespace
metadata: {name: overprovisioning}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: overprovisioning-placeholder}
value: -1000
preemptionPolicy: Never
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: aws-node, namespace: kube-system}
spec:
  selector: {matchLabels: {app: aws-node}}
  template:
    metadata: {labels: {app: aws-node}}
    spec: {tolerations: [{operator: Exists}], containers: [{name: c, image: "registry.example/aws-node:1", resources: {requests: {cpu: 50m, memory: 128Mi}}}]}
`

const poolText = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: np-%[1]d}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [ml.m5.12xlarge]}
      expireAfter: Never
  limits: {cpu: "1000000", memory: 10000Ti}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5m}
---
apiVersion: workspace.jupyter.org/v1alpha1
kind: WorkspaceTemplate
metadata: {name: t%[1]d, namespace: shared}
spec:
  defaultImage: registry.example/notebook:%[1]d
  defaultResources: {requests: {cpu: "2", memory: 8Gi}}
  defaultIdleShutdown: {enabled: true, idleTimeoutInMinutes: 60}
`

func (s size) node(i int) *corev1.Node {
	name := nodeName(i)
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("47810m"), corev1.ResourceMemory: resource.MustParse("193044768Ki"),
		corev1.ResourceEphemeralStorage: resource.MustParse("95551679124"), corev1.ResourcePods: resource.MustParse("234"),
	}
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"karpenter.sh/nodepool": fmt.Sprintf("np-%d", i%s.pools), "karpenter.sh/capacity-type": "on-demand",
			corev1.LabelInstanceTypeStable: "ml.m5.12xlarge", corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
			corev1.LabelTopologyRegion: "us-west-2", corev1.LabelTopologyZone: fmt.Sprintf("us-west-2%c", 'a'+i%3),
		}},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///us-west-2a/i-" + name},
		Status: corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable},
	}
	for _, condition := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		status := corev1.ConditionFalse
		if condition == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: condition, Status: status, Reason: "Kubelet", Message: "kubelet has said so"})
	}
	for image := range s.images {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example/team/image-%02d@sha256:%064d", image, i)}, SizeBytes: 1 << 30,
		})
	}
	return node
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func (s size) workspace(i int) *corev1.Pod {
	pod := s.pod(fmt.Sprintf("workspace-%05d", i), fmt.Sprintf("team-%d", i%teams), i, "workspace", fmt.Sprintf("registry.example/notebook:%d", i%s.pools))
	pod.Labels = map[string]string{
		"app": "jupyter", "workspace.jupyter.org/workspace-name": fmt.Sprintf("w-%05d", i),
		"workspace.jupyter.org/template-name": fmt.Sprintf("t%d", i%s.pools), "workspace.jupyter.org/template-namespace": "shared",
	}
	pod.Spec.Affinity = s.affinity(i)
	return pod
}

// pod is one that runs, with what an API server and a kubelet add to each.
func (s size) pod(name, namespace string, i int, container, image string) *corev1.Pod {
	const volume = "kube-api-access-x"
	enough := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName: nodeName(i), ServiceAccountName: "default", SchedulerName: "default-scheduler", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: container, Image: image, Resources: corev1.ResourceRequirements{Requests: enough, Limits: enough},
				Ports:        []corev1.ContainerPort{{ContainerPort: 8888, Protocol: corev1.ProtocolTCP}},
				VolumeMounts: []corev1.VolumeMount{{Name: volume, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			}},
			Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: container, Image: image, ImageID: image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

func (s size) affinity(i int) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("np-%d", i%s.pools)}},
		}}},
	}}}
}

// placeholder is a Deployment and its two pods.
func (s size) placeholder(i int) (string, error) {
	name := fmt.Sprintf("placeholder-%03d", i)
	selected := map[string]string{"app": name}
	pod := s.pod(name+"-5d4f-a", namespace, i, "pause", "registry.k8s.io/pause:3.10")
	pod.Labels = selected
	pod.Spec.Affinity = s.affinity(i)
	pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: selected}, TopologyKey: corev1.LabelHostname},
	}}
	pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.TerminationGracePeriodSeconds = namespace+"-placeholder", new(int32(-1000)), new(int64(0))
	pull := pod.Spec.Containers[0]
	pull.Name, pull.Image, pull.Command = "pull-workspace-image", fmt.Sprintf("registry.example/notebook:%d", i%s.pools), []string{"true"}
	pod.Spec.InitContainers = []corev1.Container{pull}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected, Annotations: map[string]string{"karpenter.sh/do-not-disrupt": "true"}}, Spec: pod.Spec}
	template.Spec.NodeName, template.Spec.Priority, template.Spec.Tolerations = "", nil, nil
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"warmpool.sh/pool": fmt.Sprintf("p%d", i%s.pools)}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: template,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		},
	}
	documents := make([]string, 0, 3)
	first, second := *pod, *pod
	controlled := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-5d4f", UID: "u", Controller: new(true)}}
	first.OwnerReferences, second.OwnerReferences = controlled, controlled
	second.Name, second.Spec.NodeName = name+"-5d4f-b", nodeName(i+s.placeholders)
	for _, object := range []any{deployment, &first, &second} {
		document, err := text(object)
		if err != nil {
			return "", err
		}
		documents = append(documents, document)
	}
	return strings.Join(documents, separator[1:]), nil
}
