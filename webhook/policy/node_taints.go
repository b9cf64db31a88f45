package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: taints on the nodes of pools, other than those of health and life cycle.
// Requires: a NodePool declares the taint, nodeTaints lists it, or a placeholder of the pool tolerates it permanently.
// Why: warmpool makes pods tolerate what it knows of. With any other taint no placeholder and no Workspace gets onto the
// node, which is paid for all the same.
var nodeTaints = &Rule{
	ID:        "node-taints",
	Summary:   "The pool's nodes have no taint that neither its NodePools declare, nor nodeTaints lists, nor its placeholders tolerate: nothing lands there.",
	Fix:       "Add the taint to nodeTaints of the pool, or remove it from the nodes.",
	Subject:   Node,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkNodeTaints,
}

func checkNodeTaints(a *Audit) []Finding {
	findings := append(unread("nodes", a.facts.Nodes), unread("Deployments", a.facts.Deployments)...)
	if len(findings) > 0 {
		return findings
	}
	for _, pool := range a.pools.All() {
		findings = append(findings, strangeTaints(a, pool)...)
	}
	return findings
}

// tainted are the nodes of one pool that have a taint, and where the first of them has it.
type tainted struct {
	taint corev1.Taint
	path  *field.Path
	nodes []string
}

func strangeTaints(a *Audit, pool *placement.Pool) []Finding {
	tolerations := toleratedInPool(a, pool)
	nodes := a.nodes(pool)
	var found []*tainted
	for _, node := range nodes {
		for i, taint := range node.Spec.Taints {
			taint.TimeAdded = nil
			if !isHard(taint) || cluster.IsLifecycleTaint(taint.Key) || isTolerated(tolerations, &taint) {
				continue
			}
			at := slices.IndexFunc(found, func(t *tainted) bool { return t.taint == taint })
			if at < 0 {
				at = len(found)
				found = append(found, &tainted{taint: taint, path: field.NewPath("spec", "taints").Index(i)})
			}
			found[at].nodes = append(found[at].nodes, node.Name)
		}
	}
	slices.SortFunc(found, func(x, y *tainted) int { return strings.Compare(x.taint.ToString(), y.taint.ToString()) })
	var findings []Finding
	for _, t := range found {
		text := t.taint.ToString()
		message := fmt.Sprintf("%d of %d nodes of pool %s have this taint, which no NodePool declares, nodeTaints does not list and no placeholder tolerates permanently: %s",
			len(t.nodes), len(nodes), pool.Config.Name, some(t.nodes))
		f := invalid(t.path, text, message).
			withFix(fmt.Sprintf("Add %q to nodeTaints of pool %s, or remove the taint from the nodes.", text, pool.Config.Name))
		if len(pool.Unknown) > 0 {
			f = notVerified(t.path, strings.Join(append(slices.Clip(pool.Unknown), message), "; "))
		}
		findings = append(findings, f.about("Node", "", t.nodes[0], pool.Config.Name))
	}
	return findings
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
	for _, o := range a.of(pool.Config.Name) {
		tolerations = append(tolerations, o.Spec.Tolerations...)
	}
	return tolerations
}

func isTolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds == nil && placement.Tolerates(&t, taint)
	})
}

// some names at most five, and says how many more there are.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
