package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
)

func TestIsPlaceholder(t *testing.T) {
	type labels = map[string]string
	workspace := labels{"app": "jupyter", "workspace.jupyter.org/workspace-name": "w1", "warmpool.sh/pool": "gpu"}
	tests := []struct {
		name             string
		labels, template labels
		class            string
		want             bool
	}{
		{name: "labelled with a pool", labels: labels{"warmpool.sh/pool": "cpu"}, want: true},
		{name: "even with one that is not configured", labels: labels{"warmpool.sh/pool": ""}, want: true},
		{name: "labelled as in the guide", labels: labels{"app": "spaces-overprovisioning"}, want: true},
		{name: "by its PriorityClass", class: "low", want: true},
		{name: "not by another PriorityClass", class: "overprovisioning-placeholder"},
		{name: "not by another app", labels: labels{"app": "spaces"}},
		{name: "not by nothing"},
		{name: "a Workspace's Deployment carries a copy of the label", labels: workspace, template: workspace},
		{name: "and so it is by the labels of its pods alone", labels: labels{"warmpool.sh/pool": "gpu"}, template: workspace},
	}
	e := newEvaluator(t, twoPools+"placeholders: {priorityClassName: low}\n")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Labels, d.Spec.Template.Labels = test.labels, test.template
			d.Spec.Template.Spec.PriorityClassName = test.class
			assert.Equal(t, test.want, e.IsPlaceholder(d))
		})
	}
}

func TestIsWorkspace(t *testing.T) {
	e := newEvaluator(t, twoPools)
	assert.True(t, e.IsWorkspace(map[string]string{"workspace.jupyter.org/workspace-name": ""}))
	assert.False(t, e.IsWorkspace(map[string]string{"app": "spaces-placeholder", "warmpool.sh/pool": "cpu"}), "a placeholder's pod is none")
	assert.False(t, e.IsWorkspace(nil))

	e = newEvaluator(t, twoPools+"workspaces: {selector: {matchLabels: {team: notebooks}}}\n")
	assert.True(t, e.IsWorkspace(map[string]string{"team": "notebooks"}))
	assert.False(t, e.IsWorkspace(map[string]string{"workspace.jupyter.org/workspace-name": "w1"}))
}

// An audit sees what no webhook has filled.
func TestUnfilledObjects(t *testing.T) {
	pinned := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpIn, Values: []string{"cpu-a"}}}}
	loose := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}
	preferred := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: pinned}}}
	required := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{pinned, loose}}}
	const path = "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"

	e := newEvaluator(t, twoPools)
	d := &appsv1.Deployment{}
	d.Labels = map[string]string{"warmpool.sh/pool": "cpu"}
	for affinity, want := range map[*corev1.NodeAffinity]string{
		preferred: path + ": Required value: nothing keeps the pods in pool cpu: needs requiredDuringSchedulingIgnoredDuringExecution karpenter.sh/nodepool In [cpu-a] (preferred terms do not count)",
		required:  path + ".nodeSelectorTerms[1]: Required value: terms are ORed, and this one can be met outside pool cpu: needs karpenter.sh/nodepool In [cpu-a]",
	} {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
		findings := map[string]string{}
		for _, f := range e.Check(e.Placeholder(d, "warm")) {
			findings[f.Rule.ID] = f.Error.Error()
		}
		assert.Equal(t, want, findings["placeholder-pool"])
		for _, rule := range []string{"placeholder-priority", "placeholder-grace-period", "placeholder-do-not-disrupt", "placeholder-rollout"} {
			assert.Contains(t, findings, rule, "what could be filled is missing")
		}
	}

	d.Labels["warmpool.sh/pool"] = "gpu"
	assert.Equal(t, config.Deny, actionOf(e.Check(e.Placeholder(d, "warm")), "placeholder-tolerations"))
}

// A placeholder that says all that it should gets no patch, so that Git and cluster agree, and no finding.
func TestCompletePlaceholderNeedsNothing(t *testing.T) {
	e := newEvaluator(t, twoPools+"\nplaceholders: {namespace: warm}\n")
	o := decode(t, e, []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: spaces-placeholder-gpu, namespace: warm, labels: {app: spaces-overprovisioning, type: gpu, warmpool.sh/pool: gpu}}
spec:
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: spaces-placeholder, type: gpu}}
  template:
    metadata:
      labels: {app: spaces-placeholder, type: gpu}
      annotations: {karpenter.sh/do-not-disrupt: "true"}
    spec:
      priorityClassName: overprovisioning-placeholder
      terminationGracePeriodSeconds: 0
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/nodepool, operator: In, values: [gpu-a]}]}]
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: spaces-placeholder}}}
      tolerations:
      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
      - {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}
      initContainers:
      - name: pull-workspace-image
        image: public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu
        imagePullPolicy: IfNotPresent
        command: [sh, -c, echo pulled]
        resources: {requests: {cpu: 10m, memory: 64Mi}, limits: {cpu: 50m, memory: 128Mi}}
      containers:
      - name: pause
        image: registry.k8s.io/pause:3.10
        resources:
          requests: {cpu: "2", memory: 8Gi, nvidia.com/gpu: "1"}
          limits: {cpu: "2", memory: 8Gi, nvidia.com/gpu: "1"}
`))
	assert.Empty(t, e.Mutate(o))
	assert.Empty(t, printFindings(e.Check(o)))
}
