package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: Workspace pods.
// Requires: in a namespace under Task Governance a kueue queue, and a kueue priority class that exists.
// Why: without a queue Task Governance refuses the pod at its next start; with an unknown class kueue never admits it.
var workspaceQueue = &Rule{
	ID:        "workspace-queue",
	Summary:   "In a namespace under Task Governance it names a kueue queue; the kueue priority class that it names exists.",
	Fix:       "Label the Workspace " + queueName + " with a LocalQueue of its namespace.",
	Subject:   WorkspacePod,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	check: func(o *Object) []Finding {
		return append(checkQueue(o), checkQueuePriority(o)...)
	},
	around: checkQueueKnown,
}

// queuePriority is the label by which a pod names its WorkloadPriorityClass.
const queuePriority = "kueue.x-k8s.io/priority-class"

func checkQueue(o *Object) []Finding {
	if o.Meta.Labels[queueName] != "" {
		return nil
	}
	ns := o.facts.Namespaces.Get(o.Namespace)
	if ns == nil || ns.Labels[activateQuota] != "Enabled" || ns.Labels[managedQueue] != "true" {
		return nil
	}
	return []Finding{required(field.NewPath("metadata", "labels").Key(queueName),
		fmt.Sprintf("Task Governance refuses pods without a queue in namespace %s, by its labels %s=Enabled and %s=true: the Workspace does not start again", o.Namespace, activateQuota, managedQueue))}
}

// checkQueueKnown says once which namespaces the rule cannot judge, and not for each of their Workspaces.
func checkQueueKnown(a *Audit) []Finding {
	if len(a.workspaces) == 0 {
		return nil
	}
	if findings := unread("Namespaces", a.facts.Namespaces); findings != nil {
		return findings
	}
	var unknown []string
	for _, o := range a.workspaces {
		if o.Meta.Labels[queueName] == "" && a.facts.Namespaces.Get(o.Namespace) == nil {
			unknown = append(unknown, o.Namespace)
		}
	}
	slices.Sort(unknown)
	if unknown = slices.Compact(unknown); len(unknown) == 0 {
		return nil
	}
	return []Finding{notVerifiedOfNone("no Namespace object tells whether Task Governance asks for a queue in: " + clip(strings.Join(unknown, ", ")))}
}

// checkQueuePriority says nothing where there are no classes at all: kueue may not be there, or not be read.
func checkQueuePriority(o *Object) []Finding {
	name, ok := o.Meta.Labels[queuePriority]
	classes := o.facts.WorkloadPriorityClasses
	if !ok || classes.Len() == 0 || classes.Get(name) != nil || classes.Malformed(name) != "" {
		return nil
	}
	var names []string
	for name := range classes.All() {
		names = append(names, name)
	}
	f := invalid(field.NewPath("metadata", "labels").Key(queuePriority), name,
		"there is no such WorkloadPriorityClass, there are: "+clip(strings.Join(names, ", ")))
	f = f.withFix("Label the Workspace with a WorkloadPriorityClass that exists, or remove the label.")
	return []Finding{orElsewhere(f, classes, "WorkloadPriorityClass "+name+" is not among these files")}
}
