// Package chart knows the values of the Helm chart in manifests/chart, and proposes them for a cluster. It is pure: the cluster
// comes in as facts.
package chart

import (
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
)

// Values are what the chart is installed with: the fields of a WarmPoolConfiguration, and how warmpool is to run.
type Values struct {
	config.WarmPoolConfiguration

	// Image of warmpool.
	Image string `json:"image,omitempty"`
	// Namespace of warmpool itself.
	Namespace string `json:"namespace,omitempty"`
	// Placement says what places Workspace pods: webhook, cel (a policy inside the API server, Kubernetes 1.36 and later, that
	// warmpool keeps current) or static (such a policy, kept current by hand with warmpool export cel).
	Placement Placement `json:"placement,omitempty"`
	// Certs says where certificates come from: embedded (warmpool itself) or cert-manager.
	Certs Certs `json:"certs,omitempty"`
	// Monitoring adds a ServiceMonitor, alerts and a dashboard; the Prometheus Operator must be there.
	Monitoring bool `json:"monitoring,omitempty"`
	// NetworkPolicy limits whom warmpool's pods may talk to.
	NetworkPolicy bool `json:"networkPolicy,omitempty"`
	// Images are those that placeholders and their scaling run.
	Images Images `json:"images,omitzero"`
	// Pools are the warm pools, with what keeps them warm; where several would do for a pod, the first wins.
	Pools []Pool `json:"pools"`
}

// Placement is what places Workspace pods.
type Placement string

// The ways to place pods.
const (
	Webhook Placement = "webhook"
	CEL     Placement = "cel"
	Static  Placement = "static"
)

// Certs is where certificates come from.
type Certs string

// The sources of certificates.
const (
	Embedded    Certs = "embedded"
	CertManager Certs = "cert-manager"
)

// Images are those of the pattern itself.
type Images struct {
	// Pause is the container that holds a placeholder's resources.
	Pause string `json:"pause,omitempty"`
	// Autoscaler is the Cluster Proportional Autoscaler (CPA).
	Autoscaler string `json:"autoscaler,omitempty"`
}

// Pool is a warm pool as the configuration has it, and its placeholders.
type Pool struct {
	config.Pool

	// Taints are those that the pool's NodePools give to their nodes, as KEY=VALUE:EFFECT or KEY:EFFECT. Placeholders tolerate
	// these and nodeTaints.
	Taints []string `json:"taints,omitempty"`
	// Placeholders keep the pool's nodes warm.
	Placeholders []Placeholder `json:"placeholders,omitempty"`
}

// Placeholder is a Deployment of placeholders, or one in each of several zones. One of replicas and scaling is set, and
// none where the pool has a size with mode Apply.
type Placeholder struct {
	// Name of the Deployment. Default spaces-placeholder-POOL. With zones, -ZONE is added.
	Name string `json:"name,omitempty"`
	// Zones have a Deployment of this kind each.
	Zones []string `json:"zones,omitempty"`
	// Images are pulled ahead: those of the pool's templates, character for character.
	Images []string `json:"images,omitempty"`
	// Requests are what one placeholder takes of its node, as requests and limits.
	Requests corev1.ResourceList `json:"requests"`
	// Replicas is a fixed number of placeholders.
	Replicas *int32 `json:"replicas,omitempty"`
	// Scaling has CPA set the number by the pool's nodes.
	Scaling *Scaling `json:"scaling,omitempty"`
}

// Scaling is CPA's parameters: linear ones, or a ladder.
type Scaling struct {
	// NodesPerReplica is how many nodes of the pool have one placeholder. Placeholders' own nodes count: above 1.
	NodesPerReplica float64 `json:"nodesPerReplica,omitempty"`
	// CoresPerReplica is how many cores of the pool have one placeholder: more than a node has.
	CoresPerReplica float64 `json:"coresPerReplica,omitempty"`
	// Min is the least number of placeholders: 2 or more, one is warm while another is replaced.
	Min int `json:"min,omitempty"`
	// Max is the greatest number of placeholders.
	Max int `json:"max,omitempty"`
	// PreventSinglePointFailure has two where there is more than one node. Default true.
	PreventSinglePointFailure *bool `json:"preventSinglePointFailure,omitempty"`
	// IncludeUnschedulableNodes counts cordoned nodes too. Default false.
	IncludeUnschedulableNodes *bool `json:"includeUnschedulableNodes,omitempty"`
	// Ladder is CPA's ladder instead of all these.
	Ladder *Ladder `json:"ladder,omitempty"`
}

// Ladder has pairs of a number of nodes or cores, and the number of placeholders from there on.
type Ladder struct {
	CoresToReplicas [][]int `json:"coresToReplicas,omitempty"`
	NodesToReplicas [][]int `json:"nodesToReplicas,omitempty"`
}
