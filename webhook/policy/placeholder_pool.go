package policy

import (
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

func checkPlaceholderPool(o *Object) {
	if o.Pool == nil {
		path := field.NewPath("metadata", "labels").Key(placement.PoolLabel)
		o.invalid(path, o.Deployment.Labels[placement.PoolLabel], "the placeholder belongs to no pool: %s", o.Problem)
		return
	}
	missing := slices.DeleteFunc(slices.Clone(o.Accelerators), func(name string) bool { return o.Pool.Offers([]string{name}) })
	if len(missing) > 0 {
		o.invalid(o.specPath("containers"), strings.Join(missing, ", "), "asks for %s, which pool %s does not offer", strings.Join(missing, " and "), o.pool).
			withFix("Remove the resource, or label the Deployment with the pool that offers it.")
	}
	if o.Spec.NodeName != "" {
		o.invalid(o.specPath("nodeName"), o.Spec.NodeName, "binds every pod to this node, past the scheduler and past the anti-affinity").
			withFix("Remove nodeName from the pod template.")
	}
	checkPinned(o)
	o.doubtful()
	checkInstanceTypes(o)
}

func checkPinned(o *Object) {
	fit := o.fit()
	consequence, amount := "the placeholder could hold a node elsewhere", int64(1)
	if fit.Conflict {
		consequence, amount = "the placeholder would hold none of its nodes", 2
	}
	for _, x := range fit.Excluded {
		if x.Key != "" || fit.Conflict { // an empty term beside others matches nothing and does no harm
			o.excluded(x, consequence).withAmount(amount)
		}
	}
	if fit.Conflict || fit.Pinned {
		return
	}
	path, label := o.specPath(requiredNodesPath...), poolRequirement(o.Pool)
	if fit.Unrestricted {
		o.required(path, "nothing keeps the pods in pool %s: needs requiredDuringSchedulingIgnoredDuringExecution %s (preferred terms do not count)", o.pool, label).
			withKey("unrestricted")
	}
	for _, i := range fit.Loose {
		o.required(path.Child("nodeSelectorTerms").Index(i), "terms are ORed, and this one can be met outside pool %s: needs %s", o.pool, label).
			withKey("unrestricted")
	}
}

func checkInstanceTypes(o *Object) {
	strange := strings.Join(o.Pool.UnofferedInstanceTypes(o.Spec), ", ")
	if strange == "" {
		return
	}
	offered, _ := o.Pool.InstanceTypes()
	path := o.specPath("affinity", "nodeAffinity").Key(corev1.LabelInstanceTypeStable)
	if _, ok := o.Spec.NodeSelector[corev1.LabelInstanceTypeStable]; ok {
		path = o.specPath("nodeSelector").Key(corev1.LabelInstanceTypeStable)
	}
	o.invalid(path, strange, "asks for instance type %s, and pool %s offers only %s", strange, o.pool, strings.Join(offered, ", ")).
		withFix("Name only instance types that the pool's NodePools list.").atMostWarn()
}
