package generate

import (
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
)

var (
	zones   = []string{"x", "y", ""}
	reasons = []string{"PodInitializing", "ImagePullBackOff", "CrashLoopBackOff", "RunContainerError", "CreateContainerConfigError", ""}
	notes   = []string{"2 node(s) didn't match pod anti-affinity rules", "1 Insufficient cpu", "untolerated taint {a: b}", "exceed limits for nodepool", ""}
)

// Around adds what an audit looks at: nodes, placeholders with their pods, Workspaces with volumes, Events and budgets; some of
// them fit together, some kinds are unknown.
func (r Rand) Around(s *cluster.Snapshot) {
	nodes, deployments := map[string]*corev1.Node{}, map[string]*appsv1.Deployment{}
	pods, events := map[string]*corev1.Pod{}, map[string]*eventsv1.Event{}
	for i := range r.IntN(4) {
		name := "n" + strconv.Itoa(i)
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"karpenter.sh/nodepool": pick(r, poolNames), corev1.LabelTopologyZone: pick(r, zones),
		}}}
	}
	for i := range r.IntN(3) {
		d := r.Placeholder()
		d.Name, d.Spec.Selector = "ph"+strconv.Itoa(i), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ph"}}
		d.Spec.Replicas = pick(r, []*int32{nil, new(int32(0)), new(int32(1)), new(int32(3)), new(int32(-1))})
		deployments["warm/"+d.Name] = d
	}
	for i := range r.IntN(6) {
		name := "ph" + strconv.Itoa(i%3) + "-" + pick(r, []string{"5d4f", "5d4f-x"}) + "-" + strconv.Itoa(i)
		pods["warm/"+name] = r.placeholderPod(name)
		events["warm/"+name] = &eventsv1.Event{
			Regarding: corev1.ObjectReference{Kind: pick(r, []string{"Pod", "ReplicaSet"}), Name: pick(r, []string{name, "ph0-5d4f"})},
			Reason:    pick(r, []string{"FailedScheduling", "Nominated", "FailedCreate"}), Note: pick(r, notes), ReportingController: pick(r, []string{"karpenter", ""}),
		}
	}
	for i := range r.IntN(4) {
		pod := r.WorkspacePod()
		pod.Name, pod.Namespace = "w"+strconv.Itoa(i), "team"
		pod.Labels["kueue.x-k8s.io/priority-class"] = pick(r, []string{"high", ""})
		pod.Spec.ImagePullSecrets = several(r, 1, func() corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: "s"} })
		pod.Spec.Volumes = several(r, 2, func() corev1.Volume {
			claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pick(r, []string{"x", "y", "gone"})}
			return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}
		})
		pods["team/"+pod.Name] = pod
	}
	s.Nodes, s.Deployments = cluster.Known(nodes), cluster.Known(deployments)
	s.Pods, s.Events = known(r, pods), known(r, events)
	s.Claims, s.Volumes = known(r, r.claims()), known(r, r.volumes())
	s.Budgets = known(r, map[string]*policyv1.PodDisruptionBudget{"warm/b": {Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: r.intOrPercent()}}})
	s.Namespaces = known(r, map[string]*corev1.Namespace{"team": {ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{
		"sagemaker.amazonaws.com/activate-quota": "Enabled", "sagemaker.amazonaws.com/sagemaker-managed-queue": pick(r, []string{"true", ""}),
	}}}})
	s.WorkloadPriorityClasses = known(r, map[string]*cluster.WorkloadPriorityClass{"high": {Name: "high"}})
}

// known are facts, which at times could not be read.
func known[T any](r Rand, objects map[string]*T) cluster.Facts[T] {
	if r.chance(10) {
		return cluster.Unknown[T]("forbidden")
	}
	return cluster.Known(objects)
}

func (r Rand) placeholderPod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "warm", Labels: map[string]string{"app": "ph"},
		CreationTimestamp: metav1.Unix(int64(r.IntN(3))*int64(time.Minute/time.Second), 0),
	}}
	if r.chance(60) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: pick(r, []string{"ph0-5d4f", "ph1-5d4f", "", "-"}), Controller: new(true)}}
	}
	pod.Spec.NodeName = pick(r, []string{"n0", "n1", "gone", ""})
	pod.Spec.InitContainers = several(r, 2, func() corev1.Container { return r.puller(pick(r, initNames)) })
	pod.Status.Phase = pick(r, []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed, ""})
	pod.Status.Conditions = several(r, 1, func() corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: pick(r, []string{"Unschedulable", "SchedulingGated"}), Message: pick(r, notes)}
	})
	pod.Status.InitContainerStatuses = several(r, 2, func() corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: pick(r, initNames), State: r.state(), LastTerminationState: r.state()}
	})
	return pod
}

func (r Rand) state() (state corev1.ContainerState) {
	if r.chance(50) {
		state.Waiting = &corev1.ContainerStateWaiting{Reason: pick(r, reasons)}
	}
	if r.chance(40) {
		state.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(r.IntN(2)), Reason: pick(r, reasons)}
	}
	return state
}

func (r Rand) claims() map[string]*corev1.PersistentVolumeClaim {
	return map[string]*corev1.PersistentVolumeClaim{
		"team/x": {Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "x"}}, "team/y": {Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pick(r, []string{"y", ""})}},
	}
}

func (r Rand) volumes() map[string]*corev1.PersistentVolume {
	volumes := map[string]*corev1.PersistentVolume{}
	for _, name := range []string{"x", "y"} {
		v := &corev1.PersistentVolume{}
		if r.chance(80) {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: pick(r, []*corev1.NodeSelector{nil, {NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: several(r, 2, func() string { return pick(r, zones) })}},
			}}}})}
		}
		volumes[name] = v
	}
	return volumes
}
