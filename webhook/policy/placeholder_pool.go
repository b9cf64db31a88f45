package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: exactly one pool, and required node affinity or a nodeSelector that keeps the pods in it.
// Why: a placeholder outside its pool, or in two, keeps the wrong nodes warm and bills for them.
var placeholderPool = &Rule{
	ID:       "placeholder-pool",
	Summary:  "Belongs to exactly one pool, and required node affinity or a nodeSelector pins it there; instance types that it names are offered by the pool's NodePools.",
	Fix:      "Label the Deployment warmpool.sh/pool with its pool and let warmpool fill the node affinity.",
	Subject:  PlaceholderDeployment,
	Fills:    "required node affinity",
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkPlaceholderPool,
	mutate: func(o *Object, patch *placement.Patch) {
		if o.Pool != nil {
			o.Pool.Require(o.Spec, o.specPointer(), patch)
		}
	},
}

func checkPlaceholderPool(o *Object) []Finding {
	if o.Pool == nil {
		path := field.NewPath("metadata", "labels").Key(placement.PoolLabel)
		return []Finding{invalid(path, o.Deployment.Labels[placement.PoolLabel], "the placeholder belongs to no pool: "+o.Problem)}
	}
	var findings []Finding
	if missing := notOffered(o.Pool, o.Accelerators); len(missing) > 0 {
		findings = append(findings, invalid(o.specPath("containers"), strings.Join(missing, ", "),
			fmt.Sprintf("asks for %s, which pool %s does not offer", strings.Join(missing, " and "), o.Pool.Config.Name)).
			withFix("Remove the resource, or label the Deployment with the pool that offers it."))
	}
	if o.Spec.NodeName != "" {
		findings = append(findings, invalid(o.specPath("nodeName"), o.Spec.NodeName,
			"binds every pod to this node, past the scheduler and past the anti-affinity").withFix("Remove nodeName from the pod template."))
	}
	findings = append(findings, checkPinned(o)...)
	findings = append(findings, doubtFindings(o)...)
	return append(findings, checkInstanceTypes(o)...)
}

func notOffered(pool *placement.Pool, accelerators []string) []string {
	return slices.DeleteFunc(slices.Clone(accelerators), func(name string) bool { return pool.Offers([]string{name}) })
}

func checkPinned(o *Object) []Finding {
	fit := o.fit()
	label := poolRequirement(o.Pool)
	var findings []Finding
	for _, x := range fit.Excluded {
		if x.Key == "" && !fit.Conflict {
			continue // an empty term beside others matches nothing and does no harm
		}
		consequence, amount := "the placeholder could hold a node elsewhere", int64(1)
		if fit.Conflict {
			consequence, amount = "the placeholder would hold none of its nodes", 2
		}
		f := excludedFinding(o, x, consequence)
		f.amount = amount
		findings = append(findings, f)
	}
	if fit.Conflict || fit.Pinned {
		return findings
	}
	path := o.specPath("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	if fit.Unrestricted {
		findings = append(findings, required(path, fmt.Sprintf("nothing keeps the pods in pool %s: needs requiredDuringSchedulingIgnoredDuringExecution %s (preferred terms do not count)",
			o.Pool.Config.Name, label)).withKey("unrestricted"))
	}
	for _, i := range fit.Loose {
		findings = append(findings, required(path.Child("nodeSelectorTerms").Index(i), fmt.Sprintf("terms are ORed, and this one can be met outside pool %s: needs %s",
			o.Pool.Config.Name, label)).withKey("unrestricted"))
	}
	return findings
}

// poolRequirement is the pool's requirement as text: karpenter.sh/nodepool In [spaces-gpu].
func poolRequirement(pool *placement.Pool) string {
	return fmt.Sprintf("%s In [%s]", pool.Requirement.Key, strings.Join(pool.Requirement.Values, ", "))
}

// excludedFinding reports a part of the node selection that no node of the pool can meet.
func excludedFinding(o *Object, x placement.Exclusion, consequence string) Finding {
	path := o.path.Child("spec").Child(x.Field())
	if x.Key == "" {
		return invalid(path, "{}", "an empty term matches no node at all").withKey("empty term").
			withFix("Remove the empty term, or give it the requirements that it was meant to have.")
	}
	text, key := requirementsOn(o.Spec, x)
	return invalid(path, text, fmt.Sprintf("%s excludes pool %s, which %s: %s", text, o.Pool.Config.Name, clip(o.Pool.Offer(x.Key)), consequence)).
		withKey("excluded " + text). // not the term's index, which moves
		withFix(fmt.Sprintf("Remove the requirement on %s, or name the pool that is meant by the label %s.", key, placement.PoolLabel))
}

// doubtFindings report parts of the node selection that do not exclude the pool, but that no node may meet.
func doubtFindings(o *Object) []Finding {
	if o.fit().Conflict {
		return nil
	}
	var findings []Finding
	for _, x := range o.Pool.Doubts(o.Spec) {
		text, key := requirementsOn(o.Spec, x)
		path := o.path.Child("spec").Child(x.Field())
		findings = append(findings, invalid(path, text, fmt.Sprintf("pool %s, which %s, may have no node for %s: the pod would stay Pending",
			o.Pool.Config.Name, clip(o.Pool.Offer(x.Key)), text)).withKey("doubt "+text).
			withFix(fmt.Sprintf("Remove the requirement on %s, or have a NodePool of the pool offer it.", key)).atMostWarn())
	}
	return findings
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
		term := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[x.Term]
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

func checkInstanceTypes(o *Object) []Finding {
	strange := o.Pool.UnofferedInstanceTypes(o.Spec)
	if len(strange) == 0 {
		return nil
	}
	offered, _ := o.Pool.InstanceTypes()
	path := o.specPath("affinity", "nodeAffinity").Key(corev1.LabelInstanceTypeStable)
	if _, ok := o.Spec.NodeSelector[corev1.LabelInstanceTypeStable]; ok {
		path = o.specPath("nodeSelector").Key(corev1.LabelInstanceTypeStable)
	}
	return []Finding{invalid(path, strings.Join(strange, ", "),
		fmt.Sprintf("asks for instance type %s, and pool %s offers only %s", strings.Join(strange, ", "), o.Pool.Config.Name, strings.Join(offered, ", "))).
		withFix("Name only instance types that the pool's NodePools list.").atMostWarn()}
}
