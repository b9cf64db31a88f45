package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// unscheduled are the causes in the scheduler's words. It tries taints first, then affinity, then size: a node that is
// short of something is one that the pod may go to, so what comes later in its order tells more.
var unscheduled = []struct{ text, cause, fix string }{
	{"anti-affinity", "every node that it may go to has a placeholder already, and no node comes", "Look at the NodePool's events and limits."},
	{"Insufficient ", "no node that it may go to has room (size), and no node comes", "Make the placeholder smaller (see placeholder-size), or look at the NodePool's events and limits."},
	{"Too many pods", "the nodes that it may go to take no more pods (size), and no node comes", "Look at the NodePool's events and limits."},
	{"untolerated taint", "nodes have a taint that it does not tolerate (taint)", "Add the toleration (see placeholder-tolerations), or list the taint in the pool's nodeTaints."},
	{"affinity", "no node matches its node affinity or selector (affinity)", "Correct the node affinity (see placeholder-pool), or the NodePool's labels."},
}

// patience is how long a pod may wait for a node before that counts as stuck: a new node takes 5 to 7 minutes.
const patience = 10 * time.Minute

// full is how many of these causes are about nodes that are taken: waiting is normal where none can come.
const full = 3

// whyUnscheduled says why a pod has no node: the autoscaler's word counts more than the scheduler's, which is the same
// while a node is on its way.
func (a *Audit) whyUnscheduled(o *Object, pod *corev1.Pod, c *corev1.PodCondition) stuck {
	if c.Reason == corev1.PodReasonSchedulingGated {
		return stuck{what: "are held back by scheduling gates", detail: gates(pod), fix: "Find out who sets the gates; kueue does for pods that carry its queue label."}
	}
	detail := ": " + c.Message
	if event := a.lastScaling(pod); event != nil {
		detail = ": " + event.Note
		switch {
		case event.Reason == "Nominated" || event.Reason == "TriggeredScaleUp":
			return stuck{what: "wait for a node that is on its way", detail: detail, fix: "Wait for the node.", severity: SeverityInfo}
		case atLimit(event.Note):
			s := a.whoHasNodes(o)
			s.what, s.detail = "wait at the limit of the NodePool"+s.what, detail
			s.fix = cmp.Or(s.fix, "Raise the limit if the pool should be larger.")
			return s
		default:
			return stuck{what: "get no node, says the autoscaler", detail: detail}
		}
	}
	if why := a.mayStillGetNode(pod, c); why != "" {
		return stuck{what: "are Pending, " + why, detail: detail, fix: "Look again later.", severity: SeverityInfo}
	}
	for i, u := range unscheduled {
		if !strings.Contains(c.Message, u.text) {
			continue
		}
		s := stuck{what: "are Pending: " + u.cause, detail: detail, fix: u.fix}
		switch {
		case i >= full:
		case o.Pool != nil && (o.Pool.Static || o.Pool.Config.Autoscaler == config.NoAutoscaler):
			s = a.whoHasNodes(o)
			s.what, s.detail = "wait for one of the pool's nodes, whose number is fixed"+s.what, detail
			s.fix = cmp.Or(s.fix, "Add nodes if the pool should be larger.")
		case !a.facts.Events.KnownIn(pod.Namespace):
			s.severity = SeverityWarning
			s.detail += fmt.Sprintf(" (it may be at the NodePool's limit: Events: %s)", a.facts.Events.ReasonIn(pod.Namespace))
		}
		return s
	}
	return stuck{what: "are Pending", detail: detail}
}

// whoHasNodes ends the sentence about pods that wait while their pool cannot grow. That is normal only where Workspaces are on
// the pool's nodes; without any the placeholders alone are too many, and nothing changes by itself.
func (a *Audit) whoHasNodes(o *Object) stuck {
	if o.Pool == nil || !a.facts.Nodes.Known() {
		return stuck{severity: SeverityInfo}
	}
	taken := slices.ContainsFunc(a.workspaces, func(w *Object) bool {
		node := a.facts.Nodes.Get(w.Pod.Spec.NodeName)
		return node != nil && o.Pool.HasNode(node)
	})
	switch nodes := len(a.nodes(o.Pool)); {
	case taken:
		return stuck{what: ", which is normal: Workspaces have its nodes", severity: SeverityInfo}
	case nodes == 0: // none that Workspaces, or anything else, could have
		return stuck{severity: SeverityInfo}
	default:
		return stuck{
			what: fmt.Sprintf(", and no Workspace is on its nodes (%d)", nodes), severity: SeverityWarning,
			fix: "Ask for fewer placeholders, or let the pool have more nodes (see nodepool-limits).",
		}
	}
}

// mayStillGetNode says why it is no fault yet that a pod has no node; empty when it is one. Files may have lost since when
// it waits.
func (a *Audit) mayStillGetNode(pod *corev1.Pod, c *corev1.PodCondition) string {
	since := c.LastTransitionTime
	if since.IsZero() {
		since = pod.CreationTimestamp
	}
	switch {
	case since.IsZero():
		return "and nothing tells since when: a new node takes 5 to 7 minutes"
	case a.now.Sub(since.Time) < patience:
		return fmt.Sprintf("and not yet for %d minutes: a new node takes 5 to 7", int(patience.Minutes()))
	default:
		return ""
	}
}

func gates(pod *corev1.Pod) string {
	var names []string
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return ": " + strings.Join(names, ", ")
}

// atLimit tells that an autoscaler may not add a node, in the words of Karpenter and of Cluster Autoscaler.
func atLimit(note string) bool {
	return strings.Contains(note, "exceed limits for nodepool") || strings.Contains(note, "node limits have been exhausted") ||
		strings.Contains(note, "max node group size reached")
}

// lastScaling is the last word of an autoscaler about a pod without a node; nil: none.
func (a *Audit) lastScaling(pod *corev1.Pod) *eventsv1.Event {
	var last *eventsv1.Event
	for _, event := range a.facts.Events.Prefix(pod.Namespace + "/") {
		if event.Regarding.Kind != "Pod" || event.Regarding.Name != pod.Name || event.Regarding.UID != "" && event.Regarding.UID != pod.UID {
			continue
		}
		byScheduler := event.Reason == "FailedScheduling" && !strings.Contains(event.ReportingController+event.DeprecatedSource.Component, "karpenter")
		switch event.Reason {
		case "FailedScheduling", "Nominated", "TriggeredScaleUp", "NotTriggerScaleUp":
			if !byScheduler && (last == nil || !eventTime(event).Before(eventTime(last))) {
				last = event
			}
		}
	}
	return last
}

// eventTime is when an event was last seen.
func eventTime(event *eventsv1.Event) time.Time {
	latest := event.EventTime.Time
	if event.Series != nil && event.Series.LastObservedTime.After(latest) {
		latest = event.Series.LastObservedTime.Time
	}
	if event.DeprecatedLastTimestamp.After(latest) {
		latest = event.DeprecatedLastTimestamp.Time
	}
	return latest
}

// refusedPods tells of a placeholder without any pod, for which the API server refuses each one that its ReplicaSet makes.
// Where the Deployment itself says so, placeholder-pods has it.
func (a *Audit) refusedPods(o *Object) (f Finding, found bool) {
	if len(a.pods(o)) > 0 || replicasOf(o.Deployment) == 0 || podFailure(o.Deployment) != nil {
		return Finding{}, false
	}
	var last *eventsv1.Event
	for _, event := range a.facts.Events.Prefix(o.Namespace + "/") {
		if event.Reason == "FailedCreate" && event.Regarding.Kind == "ReplicaSet" && deploymentOfReplicaSet(event.Regarding.Name) == o.Name &&
			(last == nil || !eventTime(event).Before(eventTime(last))) {
			last = event
		}
	}
	if last == nil {
		return Finding{}, false
	}
	f = invalid(field.NewPath("status", "unavailableReplicas"), replicasOf(o.Deployment), "it has no pod at all: "+clip(last.Note))
	return f.withFix("Correct what the API server refuses; see placeholder-pods, placeholder-namespace and placeholder-priority."), true
}
