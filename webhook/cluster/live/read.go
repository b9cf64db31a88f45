package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// requestTimeout bounds each request: a page of 500 objects takes seconds at most.
const requestTimeout = 30 * time.Second

// Reading reads a cluster once, kind by kind and in pages, for commands that look once. What this user may not read, or
// what fails, is not known, and the rest is read.
type Reading struct {
	client     client.Client
	progress   func(what string)
	unreadable []string
	denied     map[string]bool
	failures   []error
}

// NewReading connects to a cluster. progress, if not nil, is told the kind that is read next. The error says that the
// cluster cannot be reached.
func NewReading(config *rest.Config, progress func(what string)) (*Reading, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0 // one request at a time; the API server's own limits hold
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	if _, err := server.ServerVersion(); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	api, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	r := ReadingBy(api)
	if progress != nil {
		r.progress = progress
	}
	return r, nil
}

// ReadingBy reads a cluster by a client of the API server, not of a cache. A new client knows which CRDs there are now.
func ReadingBy(api client.Client) *Reading {
	return &Reading{client: api, progress: func(string) {}}
}

// Unreadable says what could not be read, one clause each, in the order of reading.
func (r *Reading) Unreadable() []string { return r.unreadable }

// Denied are the verbs and kinds of Unreadable, sorted, without the names, which are values of objects.
func (r *Reading) Denied() []string { return slices.Sorted(maps.Keys(r.denied)) }

// Failed says what could not be read though this user may: it may be there next time. Nil: nothing.
func (r *Reading) Failed() error { return errors.Join(r.failures...) }

// Snapshot reads what admission goes by; what only audits look at and what was last seen of pools is not in it.
// candidate is CacheOptions'.
func (r *Reading) Snapshot(ctx context.Context, candidate func(*appsv1.Deployment) bool) *cluster.Snapshot {
	facts := r.sizes(ctx, candidate)
	facts.ResourceQuotas = r.quotas(ctx)
	return facts
}

func (r *Reading) quotas(ctx context.Context) cluster.Facts[corev1.ResourceQuota] {
	return list(ctx, r, &corev1.ResourceQuotaList{}, everywhere, stripQuota, as[corev1.ResourceQuota])
}

// sizes reads what denials and sizes go by: all but ResourceQuotas.
func (r *Reading) sizes(ctx context.Context, candidate func(*appsv1.Deployment) bool) *cluster.Snapshot {
	return &cluster.Snapshot{
		Nodes:           list(ctx, r, &corev1.NodeList{}, everywhere, stripNode, as[corev1.Node]),
		Namespaces:      list(ctx, r, &corev1.NamespaceList{}, everywhere, stripNamespace, as[corev1.Namespace]),
		LimitRanges:     list(ctx, r, &corev1.LimitRangeList{}, everywhere, strip, as[corev1.LimitRange]),
		Deployments:     list(ctx, r, &appsv1.DeploymentList{}, everywhere, stripDeployments(candidate), placeholderCandidate),
		DaemonSets:      list(ctx, r, &appsv1.DaemonSetList{}, everywhere, stripDaemonSet, countedDaemonSet),
		RuntimeClasses:  list(ctx, r, &nodev1.RuntimeClassList{}, everywhere, strip, as[nodev1.RuntimeClass]),
		PriorityClasses: list(ctx, r, &schedulingv1.PriorityClassList{}, everywhere, strip, as[schedulingv1.PriorityClass]),
		NodePools:       listCustom(ctx, r, cluster.NodePoolGroupKind, cluster.Unknown[cluster.NodePool](noCRD(cluster.NodePoolGroupKind)), cluster.NodePoolFrom),
		NodeClaims:      listCustom(ctx, r, cluster.NodeClaimGroupKind, cluster.Unknown[cluster.NodeClaim](noCRD(cluster.NodeClaimGroupKind)), cluster.NodeClaimFrom),
		Templates:       listCustom(ctx, r, cluster.WorkspaceTemplateGroupKind, cluster.Unknown[cluster.WorkspaceTemplate](noCRD(cluster.WorkspaceTemplateGroupKind)), cluster.WorkspaceTemplateFrom),
	}
}

// anyTarget follows the CPAs of all Deployments that are there.
var anyTarget = Scope{IsPlaceholder: func(*appsv1.Deployment) bool { return true }}

// Read takes one Snapshot of a cluster as Reading.Snapshot does, for commands that need all of it but the ResourceQuotas.
// What was last seen of pools is not in it: lastseen.Read reads that. The error says that the cluster cannot be reached, or
// what cannot be read.
func Read(ctx context.Context, config *rest.Config, candidate func(*appsv1.Deployment) bool) (*cluster.Snapshot, error) {
	r, err := NewReading(config, nil)
	if err != nil {
		return nil, err
	}
	facts := r.sizes(ctx, candidate)
	if len(r.unreadable) > 0 {
		return nil, errors.New(strings.Join(r.unreadable, "; "))
	}
	facts.ResourceQuotas = r.quotas(ctx)
	facts.ConfigMaps = get[corev1.ConfigMap](ctx, r, configMapsOf(scalersOf(facts.Deployments, anyTarget), "")) // what cannot be read is not known
	return facts, nil
}
