package policy

import (
	"fmt"
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
}

// queuePriority is the label by which a pod names its WorkloadPriorityClass.
const queuePriority = "kueue.x-k8s.io/priority-class"

func checkQueue(o *Object) []Finding {
	if o.Meta.Labels[queueName] != "" {
		return nil
	}
	path := field.NewPath("metadata", "labels").Key(queueName)
	ns := o.facts.Namespaces.Get(o.Namespace)
	switch {
	case !o.facts.Namespaces.Known():
		return []Finding{notVerified(path, "Namespaces: "+o.facts.Namespaces.Reason())}
	case ns == nil:
		return []Finding{notVerified(path, "namespace "+o.Namespace+" is not known")}
	case ns.Labels[activateQuota] == "Enabled" && ns.Labels[managedQueue] == "true":
		return []Finding{required(path, fmt.Sprintf("Task Governance refuses pods without a queue in namespace %s, by its labels %s=Enabled and %s=true: the Workspace does not start again",
			o.Namespace, activateQuota, managedQueue))}
	default:
		return nil
	}
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
	return []Finding{f.withFix("Label the Workspace with a WorkloadPriorityClass that exists, or remove the label.")}
}
