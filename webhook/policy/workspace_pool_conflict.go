package policy

import (
	"fmt"

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
	Summary:  "The pod's own node selection and pool label do not exclude the pool it belongs to, and its template tells which it is.",
	Fix:      "Remove the pod's own node selection, or name its pool by the Workspace's label warmpool.sh/pool.",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkWorkspaceConflict,
}

func checkWorkspaceConflict(o *Object) []Finding {
	if o.Pool == nil {
		return nil
	}
	var findings []Finding
	switch {
	case o.ByTemplate:
		findings = append(findings, invalid(field.NewPath("metadata", "labels").Key(placement.TemplateNamespaceLabel), o.Meta.Labels[placement.TemplateNamespaceLabel],
			fmt.Sprintf("%s; taken for pool %s, the first", o.Problem, o.Pool.Config.Name)).
			withFix("Set workspaces.defaultTemplateNamespace to the Workspace controller's --default-template-namespace, or name the template's namespace in the Workspace's templateRef.").atMostWarn())
	case o.Problem != "":
		findings = append(findings, invalid(field.NewPath("metadata", "labels").Key(placement.PoolLabel), o.Meta.Labels[placement.PoolLabel],
			fmt.Sprintf("%s; taken for pool %s", o.Problem, o.Pool.Config.Name)).
			withFix("Correct or remove the Workspace's label "+placement.PoolLabel+".").atMostWarn())
	}
	fit := o.fit()
	for _, x := range fit.Excluded {
		switch {
		case fit.Conflict:
			findings = append(findings, excludedFinding(o, x, "the pod would start on a cold node"))
		case x.Key != "":
			findings = append(findings, excludedFinding(o, x, "the pod may start on a cold node").atMostWarn())
		}
	}
	return append(findings, doubtFindings(o)...)
}
