package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/placement"
)

// Applies to: taints on the nodes of pools, other than those of health and life cycle.
// Requires: a NodePool declares the taint, nodeTaints lists it, or a placeholder of the pool tolerates it permanently.
// Why: warmpool makes pods tolerate what it knows of. With any other taint no placeholder and no Workspace gets onto the
// node, which is paid for all the same.
var nodeTaints = &Rule{
	ID:       "node-taints",
	Summary:  "The pool's nodes have no taint that neither its NodePools declare, nor nodeTaints lists, nor its placeholders tolerate: nothing lands there.",
	Fix:      "Add the taint to nodeTaints of the pool, or remove it from the nodes.",
	Subject:  Node,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		unreadNodes, unreadPlaceholders := a.unread("nodes", a.facts.Nodes), a.unread("Deployments", a.facts.Deployments)
		if unreadNodes || unreadPlaceholders {
			return
		}
		for _, pool := range a.pools.All() {
			judgeNodeTaints(a, pool)
		}
	},
}

// tainted are the nodes of one pool that have a taint, and where the first of them has it.
type tainted struct {
	path  *field.Path
	nodes []string
}

func judgeNodeTaints(a *Audit, pool *placement.Pool) {
	tolerations := toleratedInPool(a, pool)
	nodes := a.Nodes(pool)
	found := map[string]*tainted{}
	for _, node := range nodes {
		for i := range node.Spec.Taints {
			taint := &node.Spec.Taints[i]
			if !keepsOthersAway(*taint) || isTolerated(tolerations, taint) {
				continue
			}
			if found[taint.ToString()] == nil {
				found[taint.ToString()] = &tainted{path: field.NewPath("spec", "taints").Index(i)}
			}
			found[taint.ToString()].nodes = append(found[taint.ToString()].nodes, node.Name)
		}
	}
	for _, taint := range slices.Sorted(maps.Keys(found)) {
		t, name := found[taint], pool.Config.Name
		message := fmt.Sprintf("%d of %d nodes of pool %s have this taint, which no NodePool declares, nodeTaints does not list and no placeholder tolerates permanently: %s",
			len(t.nodes), len(nodes), name, some(t.nodes))
		about := a.about("Node", "", t.nodes[0], name)
		if len(pool.Unknown) > 0 {
			about.notVerified(t.path, "%s; %s", strings.Join(pool.Unknown, "; "), message)
			continue
		}
		about.invalid(t.path, taint, "%s", message).
			withFix("Add %q to nodeTaints of pool %s, or remove the taint from the nodes.", taint, name)
	}
}

// toleratedInPool are the tolerations that warmpool gives to pods of the pool, and those of the pool's placeholders.
// Start-up taints count as tolerated: they go away.
func toleratedInPool(a *Audit, pool *placement.Pool) []corev1.Toleration {
	_, tolerations := pool.Untolerated(nil)
	for _, np := range pool.NodePools {
		for _, t := range np.StartupTaints {
			tolerations = append(tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpExists, Effect: t.Effect})
		}
	}
	for _, o := range a.Of(pool.Config.Name) {
		tolerations = append(tolerations, o.Spec.Tolerations...)
	}
	return tolerations
}
