package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
)

// requiredNodesPath is that of the required node affinity in the pod spec.
var requiredNodesPath = []string{"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"}

// poolRequirement is the pool's requirement as text: karpenter.sh/nodepool In [spaces-gpu].
func poolRequirement(pool *placement.Pool) string {
	return fmt.Sprintf("%s In [%s]", pool.Requirement.Key, strings.Join(pool.Requirement.Values, ", "))
}

// excluded reports a part of the node selection that no node of the pool can meet.
func (o *Object) excluded(x placement.Exclusion, consequence string) *Finding {
	path := o.path.Child("spec").Child(x.Field())
	if x.Key == "" {
		return o.invalid(path, "{}", "an empty term matches no node at all").withKey("empty term").
			withFix("Remove the empty term, or give it the requirements that it was meant to have.")
	}
	asks, key := requirementsOn(o.Spec, x)
	return o.invalid(path, asks, "%s excludes pool %s, which %s: %s", asks, o.pool, clip(o.Pool.Offer(x.Key)), consequence).
		withKey("excluded "+asks). // not the term's index, which moves
		withFix("Remove the requirement on %s, or name the pool that is meant by the label %s.", key, placement.PoolLabel)
}

// doubtful reports parts of the node selection that do not exclude the pool, but that no node may meet.
func (o *Object) doubtful() {
	if o.fit().Conflict {
		return
	}
	for _, x := range o.Pool.Doubts(o.Spec) {
		asks, key := requirementsOn(o.Spec, x)
		o.invalid(o.path.Child("spec").Child(x.Field()), asks, "pool %s, which %s, may have no node for %s: the pod would stay Pending",
			o.pool, clip(o.Pool.Offer(x.Key)), asks).withKey("doubt "+asks).atMostWarn().
			withFix("Remove the requirement on %s, or have a NodePool of the pool offer it.", key)
	}
}

// requirementsOn writes what excludes the pool: KEY=VALUE of the nodeSelector, KEY OPERATOR [VALUES] of a term, or both
// where only together they do. key is the label as the user names it first.
func requirementsOn(spec *corev1.PodSpec, x placement.Exclusion) (text, key string) {
	var parts []string
	name := func(k string) bool {
		if placement.NormalKey(k) != x.Key {
			return false
		}
		key = cmp.Or(key, k)
		return true
	}
	for _, k := range placement.Names(x.Key) {
		if value, asked := spec.NodeSelector[k]; asked && name(k) {
			parts = append(parts, k+"="+value)
		}
	}
	if x.Term >= 0 {
		term := &cluster.RequiredNodes(spec).NodeSelectorTerms[x.Term]
		for _, r := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			switch {
			case !name(r.Key):
			case len(r.Values) == 0:
				parts = append(parts, fmt.Sprintf("%s %s", r.Key, r.Operator))
			default:
				parts = append(parts, fmt.Sprintf("%s %s [%s]", r.Key, r.Operator, strings.Join(r.Values, ", ")))
			}
		}
	}
	return clip(strings.Join(parts, " and ")), key
}
