package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"warmpool.sh/webhook/cluster"
)

// readTimeout bounds Read: a cluster that cannot be listed in this time is not readable for this user.
const readTimeout = 30 * time.Second

// Read takes one Snapshot of a cluster, for commands that look once. candidate is CacheOptions'. What was last seen of
// pools is not in it: lastseen.Read reads that. The error says that the cluster cannot be reached, or that it could not
// be listed in 30 seconds.
func Read(ctx context.Context, config *rest.Config, candidate func(*appsv1.Deployment) bool) (*cluster.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	if _, err := client.ServerVersion(); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	r := newReader(klog.Background().V(1))
	r.discovery = client
	if r.cache, err = cache.New(config, CacheOptions("", "", candidate)); err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	done := make(chan error, 2)
	go func() { done <- r.cache.Start(ctx) }()
	go func() { done <- r.Start(ctx) }()
	defer func() { cancel(); _, _ = <-done, <-done }() // it was stopped, nothing failed
	for {
		select {
		case <-time.After(10 * time.Millisecond):
			if r.Synced() {
				return r.Snapshot(), nil
			}
		case <-ctx.Done():
			return nil, errors.New("the cluster could not be listed in 30 s; may this user list nodes, namespaces, limitranges, deployments, daemonsets, runtimeclasses, priorityclasses, nodepools, nodeclaims and workspacetemplates?")
		}
	}
}
