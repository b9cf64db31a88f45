package cluster

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that a Snapshot holds. To add one:
//
//   - a field of Snapshot, or of Around for what only an audit reads;
//   - its Kind below, in one of the lists at the end. Files are read by that alone;
//   - the right to read it (manifests/base/warmpool/rbac.yaml), and for Audited a line in live/around.go that says which of
//     its objects are read. Watches and lists of the rest follow from the lists.
var (
	Nodes = &Kind[corev1.Node]{
		Description: Description{GroupVersionKind: core("Node"), Skipped: []string{"status", "images"}},
		in:          func(s *Snapshot) *Facts[corev1.Node] { return &s.Nodes },
		keep:        keepNode, complete: completeNode,
	}
	Namespaces = &Kind[corev1.Namespace]{
		Description: Description{GroupVersionKind: core("Namespace")},
		in:          func(s *Snapshot) *Facts[corev1.Namespace] { return &s.Namespaces },
		keep:        keepNamespace, complete: completeNamespace,
	}
	LimitRanges = &Kind[corev1.LimitRange]{
		Description: Description{GroupVersionKind: core("LimitRange")},
		in:          func(s *Snapshot) *Facts[corev1.LimitRange] { return &s.LimitRanges },
		complete:    completeLimitRange,
	}
	// Deployments are those that may be placeholders: live cuts others down to their names.
	Deployments = &Kind[appsv1.Deployment]{
		Description: Description{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment")},
		in:          func(s *Snapshot) *Facts[appsv1.Deployment] { return &s.Deployments },
		keep:        keepDeployment,
		wanted:      func(d *appsv1.Deployment) bool { return d.Spec.Selector != nil }, // every API server asks for one
	}
	DaemonSets = &Kind[appsv1.DaemonSet]{
		// Whoever makes one that is too large must not have the sizes of all pools be not verified.
		Description: Description{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), OmitTooLarge: true},
		in:          func(s *Snapshot) *Facts[appsv1.DaemonSet] { return &s.DaemonSets },
		keep:        keepDaemonSet,
	}
	RuntimeClasses = &Kind[nodev1.RuntimeClass]{
		Description: Description{GroupVersionKind: nodev1.SchemeGroupVersion.WithKind("RuntimeClass")},
		in:          func(s *Snapshot) *Facts[nodev1.RuntimeClass] { return &s.RuntimeClasses },
	}
	PriorityClasses = &Kind[schedulingv1.PriorityClass]{
		Description: Description{GroupVersionKind: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass")},
		in:          func(s *Snapshot) *Facts[schedulingv1.PriorityClass] { return &s.PriorityClasses },
		preset: map[string]any{
			"system-cluster-critical": priorityClass("system-cluster-critical", 2_000_000_000),
			"system-node-critical":    priorityClass("system-node-critical", 2_000_001_000),
		},
	}
	NodePools = &Kind[NodePool]{
		Description: custom(NodePoolGroupKind),
		in:          func(s *Snapshot) *Facts[NodePool] { return &s.NodePools },
		from:        NodePoolFrom, keepContent: keepNodePool,
	}
	NodeClaims = &Kind[NodeClaim]{
		Description: custom(NodeClaimGroupKind),
		in:          func(s *Snapshot) *Facts[NodeClaim] { return &s.NodeClaims },
		from:        NodeClaimFrom, keepContent: keepNodeClaim,
	}
	WorkspaceTemplates = &Kind[WorkspaceTemplate]{
		Description: Description{GroupVersionKind: WorkspaceTemplateGroupKind.WithVersion(""), Namespaced: true},
		in:          func(s *Snapshot) *Facts[WorkspaceTemplate] { return &s.Templates },
		from:        WorkspaceTemplateFrom,
		keepContent: func(content map[string]any) { delete(content, "status") },
	}

	PlaceholderPods = &Kind[corev1.Pod]{
		Description: Description{GroupVersionKind: core("Pod")},
		in:          func(s *Snapshot) *Facts[corev1.Pod] { return &s.PlaceholderPods },
		keep:        keepPlaceholderPod,
	}
	ResourceQuotas = &Kind[corev1.ResourceQuota]{
		Description: Description{GroupVersionKind: core("ResourceQuota")},
		in:          func(s *Snapshot) *Facts[corev1.ResourceQuota] { return &s.ResourceQuotas },
		keep:        keepResourceQuota,
	}

	Pods = &Kind[corev1.Pod]{
		Description: Description{GroupVersionKind: core("Pod")},
		in:          func(s *Snapshot) *Facts[corev1.Pod] { return &s.Pods },
		keep:        keepAuditedPod,
	}
	PodTemplates           = audited(core("PodTemplate"), func(s *Snapshot) *Facts[corev1.PodTemplate] { return &s.PodTemplates })
	Services               = audited(core("Service"), func(s *Snapshot) *Facts[corev1.Service] { return &s.Services })
	ConfigMaps             = audited(core("ConfigMap"), func(s *Snapshot) *Facts[corev1.ConfigMap] { return &s.ConfigMaps })
	PersistentVolumes      = audited(core("PersistentVolume"), func(s *Snapshot) *Facts[corev1.PersistentVolume] { return &s.Volumes })
	PersistentVolumeClaims = audited(core("PersistentVolumeClaim"), func(s *Snapshot) *Facts[corev1.PersistentVolumeClaim] { return &s.Claims })
	Events                 = audited(eventsv1.SchemeGroupVersion.WithKind("Event"), func(s *Snapshot) *Facts[eventsv1.Event] { return &s.Events })
	PodDisruptionBudgets   = audited(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		func(s *Snapshot) *Facts[policyv1.PodDisruptionBudget] { return &s.Budgets })
	HorizontalPodAutoscalers = audited(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		func(s *Snapshot) *Facts[autoscalingv2.HorizontalPodAutoscaler] { return &s.HorizontalPodAutoscalers })
	Roles               = audited(rbac("Role"), func(s *Snapshot) *Facts[rbacv1.Role] { return &s.Roles })
	RoleBindings        = audited(rbac("RoleBinding"), func(s *Snapshot) *Facts[rbacv1.RoleBinding] { return &s.RoleBindings })
	ClusterRoles        = audited(rbac("ClusterRole"), func(s *Snapshot) *Facts[rbacv1.ClusterRole] { return &s.ClusterRoles })
	ClusterRoleBindings = audited(rbac("ClusterRoleBinding"), func(s *Snapshot) *Facts[rbacv1.ClusterRoleBinding] { return &s.ClusterRoleBindings })
	MutatingWebhooks    = audited(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		func(s *Snapshot) *Facts[admissionregistrationv1.MutatingWebhookConfiguration] {
			return &s.MutatingWebhooks
		})
	ValidatingWebhooks = audited(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		func(s *Snapshot) *Facts[admissionregistrationv1.ValidatingWebhookConfiguration] {
			return &s.ValidatingWebhooks
		})

	CapacityBuffers = &Kind[CapacityBuffer]{
		Description: Description{GroupVersionKind: CapacityBufferGroupKind.WithVersion(""), Namespaced: true, Optional: true},
		in:          func(s *Snapshot) *Facts[CapacityBuffer] { return &s.CapacityBuffers },
		from:        CapacityBufferFrom,
	}
	Certificates = &Kind[Certificate]{
		Description: Description{GroupVersionKind: CertificateGroupKind.WithVersion(""), Namespaced: true, Optional: true},
		in:          func(s *Snapshot) *Facts[Certificate] { return &s.Certificates },
		from:        CertificateFrom,
	}
	WorkloadPriorityClasses = &Kind[WorkloadPriorityClass]{
		Description: Description{GroupVersionKind: WorkloadPriorityClassGroupKind.WithVersion(""), Optional: true},
		in:          func(s *Snapshot) *Facts[WorkloadPriorityClass] { return &s.WorkloadPriorityClasses },
		from:        WorkloadPriorityClassFrom,
	}
	// Workloads are kinds of which nothing but the pods is read.
	Workloads = &Kind[Workload]{
		Description: Description{
			GroupVersionKind: schema.GroupVersionKind{Group: appsv1.GroupName, Kind: "StatefulSet"}, Namespaced: true,
			Also: []schema.GroupKind{
				{Group: appsv1.GroupName, Kind: "ReplicaSet"}, {Kind: "ReplicationController"},
				{Group: batchv1.GroupName, Kind: "Job"}, {Group: batchv1.GroupName, Kind: "CronJob"},
			},
		},
		in:   func(s *Snapshot) *Facts[Workload] { return &s.Workloads },
		from: func(content map[string]any) (*Workload, error) { return WorkloadFrom(content), nil },
	}
)

// The kinds by who reads them.
var (
	// Watched are read in the whole cluster, by a running warmpool and by every command that looks at a cluster.
	Watched = []AnyKind{Nodes, Namespaces, LimitRanges, Deployments, DaemonSets, RuntimeClasses, PriorityClasses, NodePools, NodeClaims, WorkspaceTemplates}
	// WatchedInNamespace are read by a running warmpool in the placeholders' namespace alone.
	WatchedInNamespace = []AnyKind{PlaceholderPods, ResourceQuotas}
	// Audited are read when an audit runs.
	Audited = []AnyKind{
		Pods, PodTemplates, Services, ConfigMaps, PersistentVolumes, PersistentVolumeClaims, Events, PodDisruptionBudgets,
		HorizontalPodAutoscalers,
		Roles, RoleBindings, ClusterRoles, ClusterRoleBindings, MutatingWebhooks, ValidatingWebhooks,
		CapacityBuffers, Certificates, WorkloadPriorityClasses,
	}
	// InFiles are read from files.
	InFiles = slices.Concat(Watched, []AnyKind{ResourceQuotas, Workloads}, Audited)
)

// audited is a kind of Kubernetes' own of which an audit reads all.
func audited[T any](of schema.GroupVersionKind, in func(*Snapshot) *Facts[T]) *Kind[T] {
	return &Kind[T]{Description: Description{GroupVersionKind: of}, in: in}
}

func core(kind string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(kind) }
func rbac(kind string) schema.GroupVersionKind { return rbacv1.SchemeGroupVersion.WithKind(kind) }

func custom(kind schema.GroupKind) Description {
	return Description{GroupVersionKind: kind.WithVersion("")}
}
