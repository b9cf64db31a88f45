package policy

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Applies to: Workspace pods.
// Requires: in a namespace under Task Governance a kueue queue, and a kueue priority class that exists.
// Why: without a queue Task Governance refuses the pod at its next start; with an unknown class kueue never admits it.
var workspaceQueue = &Rule{
	ID:       "workspace-queue",
	Summary:  "In a namespace under Task Governance it names a kueue queue; the kueue priority class that it names exists.",
	Fix:      "Label the Workspace " + queueName + " with a LocalQueue of its namespace.",
	Subject:  WorkspacePod,
	Severity: SeverityWarning,
	check: func(o *Object) {
		checkQueue(o)
		checkQueuePriority(o)
	},
	audit: auditQueueKnown,
}

func checkQueue(o *Object) {
	ns := o.e.facts.Namespaces.Get(o.Namespace)
	if ns == nil || o.Meta.Labels[queueName] != "" {
		return
	}
	if quota, queue := governed(ns); quota && queue {
		o.required(field.NewPath("metadata", "labels").Key(queueName),
			"Task Governance refuses pods without a queue in namespace %s, by its labels %s=Enabled and %s=true: the Workspace does not start again", o.Namespace, activateQuota, managedQueue)
	}
}

// auditQueueKnown says once which namespaces the rule cannot judge, and not for each of their Workspaces.
func auditQueueKnown(a *Audit) {
	if len(a.Workspaces) == 0 || a.unread("Namespaces", a.facts.Namespaces) {
		return
	}
	unknown := map[string]bool{}
	for _, o := range a.Workspaces {
		if o.Meta.Labels[queueName] == "" && a.facts.Namespaces.Get(o.Namespace) == nil {
			unknown[o.Namespace] = true
		}
	}
	if len(unknown) > 0 {
		a.unverified("no Namespace object says whether Task Governance asks for a queue in: %s", clipped(slices.Sorted(maps.Keys(unknown))))
	}
}

// checkQueuePriority says nothing where there are no classes at all: kueue may not be there, or not be read.
func checkQueuePriority(o *Object) {
	name, ok := o.Meta.Labels[queuePriority]
	classes := o.e.facts.WorkloadPriorityClasses
	if !ok || classes.Len() == 0 || classes.Get(name) != nil || classes.Malformed(name) != "" {
		return
	}
	var names []string
	for name := range classes.All() {
		names = append(names, name)
	}
	o.invalid(field.NewPath("metadata", "labels").Key(queuePriority), name, "there is no such WorkloadPriorityClass, there are: %s", clipped(names)).
		withFix("Label the Workspace with a WorkloadPriorityClass that exists, or remove the label.").
		orElsewhere(classes, "WorkloadPriorityClass %s is not among these files", name)
}
