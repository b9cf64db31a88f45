package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: Workspace pods.
// Requires: node selection and pool label that agree with the pool the pod belongs to, and a template that tells which it is.
// Why: what the user chose is respected, so such a pod starts cold; somebody should know. So they should of a pod that is placed
// although no node of the pool is known to be as it asks.
var workspacePoolConflict = &Rule{
	ID:       "workspace-pool-conflict",
	Summary:  "The pod's own node selection and pool label do not exclude the pool it belongs to, and its template says which it is.",
	Fix:      "Remove the pod's own node selection, or name its pool by the Workspace's label warmpool.sh/pool.",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkWorkspaceConflict,
}

func checkWorkspaceConflict(o *Object) {
	if o.Pool == nil {
		return
	}
	label := func(key string) (*field.Path, string) {
		return field.NewPath("metadata", "labels").Key(key), o.Meta.Labels[key]
	}
	switch {
	case o.ByTemplate:
		path, value := label(placement.TemplateNamespaceLabel)
		o.invalid(path, value, "%s; taken for pool %s, the first", o.Problem, o.pool).atMostWarn().
			withFix("Set workspaces.defaultTemplateNamespace to the Workspace controller's --default-template-namespace, or name the template's namespace in the Workspace's templateRef.")
	case o.Problem != "":
		path, value := label(placement.PoolLabel)
		o.invalid(path, value, "%s; taken for pool %s", o.Problem, o.pool).atMostWarn().
			withFix("Correct or remove the Workspace's label " + placement.PoolLabel + ".")
	}
	fit := o.fit()
	for _, x := range fit.Excluded {
		switch {
		case fit.Conflict:
			o.excluded(x, "the pod would start on a cold node")
		case x.Key != "":
			o.excluded(x, "the pod may start on a cold node").atMostWarn()
		}
	}
	o.doubtful()
}
