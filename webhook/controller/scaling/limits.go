package scaling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

// occupants tells which nodes have Workspaces.
type occupants interface {
	Has(node string) (has, known bool)
}

// nodesInUse are what Karpenter counts against the limits of each NodePool, by its name. The Snapshot leaves them out: they change
// with every node.
func nodesInUse(ctx context.Context, reader client.Reader, version string) (map[string]corev1.ResourceList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(version)
	list.SetKind(cluster.NodePoolGroupKind.Kind + "List")
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list NodePools: %w", err)
	}
	used := map[string]corev1.ResourceList{}
	for i := range list.Items {
		counted, _, _ := unstructured.NestedMap(list.Items[i].Object, "status", "resources")
		resources := corev1.ResourceList{}
		for name, value := range counted {
			if quantity, err := resource.ParseQuantity(fmt.Sprint(value)); err == nil {
				resources[corev1.ResourceName(name)] = quantity
			}
		}
		used[list.Items[i].GetName()] = resources
	}
	return used, nil
}

// roomOf is how many nodes the NodePools of a pool may add, with those that stand empty; nil: nothing limits them.
func roomOf(pool *placement.Pool, sizes *sizing.PoolSizes, used map[string]corev1.ResourceList) (room *int, limits string) {
	sum := 0
	var names []string
	for _, np := range pool.NodePools {
		if np.Static || np.Problem != "" {
			return nil, ""
		}
		left := maps.Clone(np.Limits)
		for name, limit := range left {
			limit = limit.DeepCopy()
			limit.Sub(used[np.Name][name])
			left[name] = limit
		}
		nodes, known := sizing.Nodes(sizes.Shapes, left)
		if !known {
			return nil, ""
		}
		sum += nodes
		names = append(names, np.Name)
	}
	if len(names) == 0 {
		return nil, ""
	}
	slices.Sort(names)
	return &sum, "the limits of NodePool " + strings.Join(names, ", ")
}

// freeNodes is how many nodes of a pool are there, or on their way, for placeholders that have none: nodes that hold neither a
// placeholder nor a Workspace, and NodeClaims that have not become nodes yet.
func freeNodes(e *policy.Evaluator, pool *placement.Pool, p *placeholders, taken occupants) int {
	held := map[string]bool{}
	for _, pod := range p.pods {
		held[pod.Spec.NodeName] = true
	}
	key, values := pool.Config.Label()
	free, nodes := 0, 0
	for name, node := range e.Facts().Nodes.All() {
		if !slices.Contains(values, node.Labels[key]) {
			continue
		}
		nodes++
		if held[name] || node.DeletionTimestamp != nil || node.Spec.Unschedulable {
			continue
		}
		if has, known := taken.Has(name); known && !has {
			free++
		}
	}
	claims := 0
	for _, claim := range e.Facts().NodeClaims.All() {
		if slices.Contains(values, claim.Labels[key]) {
			claims++
		}
	}
	return free + max(claims-nodes, 0)
}
