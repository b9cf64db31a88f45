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
	candidate  func(*appsv1.Deployment) bool // CacheOptions'
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
	r.candidate = candidate
	s := &cluster.Snapshot{}
	r.list(ctx, s, everywhere, cluster.Watched...)
	r.list(ctx, s, everywhere, cluster.ResourceQuotas)
	return s
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
	facts := r.Snapshot(ctx, candidate)
	reasons := slices.DeleteFunc(r.unreadable, func(reason string) bool { return reason == facts.ResourceQuotas.Reason() })
	if len(reasons) > 0 {
		return nil, errors.New(strings.Join(reasons, "; "))
	}
	r.get(ctx, facts, cluster.ConfigMaps, configMapsOf(scalersOf(facts.Deployments, anyTarget), "")) // what cannot be read is not known
	return facts, nil
}
