package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"warmpool.sh/webhook/config"
)

// unscheduled are the causes in the scheduler's words. It tries taints first, then affinity, then size: a node that is
// short of something is one that the pod may go to, so what comes later in its order says more. Where nodes are taken,
// waiting is normal if none can come.
var unscheduled = []struct {
	text, cause, fix string
	taken            bool
}{
	{"anti-affinity", "every node that it may go to has a placeholder already, and no node comes", "Look at the NodePool's events and limits.", true},
	{"Insufficient ", "no node that it may go to has room (size), and no node comes", "Make the placeholder smaller (see placeholder-size), or look at the NodePool's events and limits.", true},
	{"Too many pods", "the nodes that it may go to take no more pods (size), and no node comes", "Look at the NodePool's events and limits.", true},
	{"untolerated taint", "nodes have a taint that it does not tolerate (taint)", "Add the toleration (see placeholder-tolerations), or list the taint in the pool's nodeTaints.", false},
	{"affinity", "no node matches its node affinity or selector (affinity)", "Correct the node affinity (see placeholder-pool), or the NodePool's labels.", false},
}

// whyUnscheduled says why a pod has no node: the autoscaler's word counts more than the scheduler's, which is the same
// while a node is on its way.
func whyUnscheduled(a *Audit, o *Object, pod *corev1.Pod, c *corev1.PodCondition) *stuck {
	if c.Reason == corev1.PodReasonSchedulingGated {
		return &stuck{what: "are held back by scheduling gates", detail: gates(pod), fix: "Find out who sets the gates; kueue does for pods that carry its queue label."}
	}
	if event := a.lastScaling(pod); event != nil {
		detail := ": " + event.Note
		switch {
		case event.Reason == "Nominated" || event.Reason == "TriggeredScaleUp":
			return &stuck{what: "wait for a node that is on its way", detail: detail, fix: "Wait for the node.", severity: SeverityInfo}
		case atLimit(event.Note):
			return cannotGrow(a, o, "wait at the limit of the NodePool", detail, "Raise the limit if the pool should be larger.")
		default:
			return &stuck{what: "get no node, says the autoscaler", detail: detail}
		}
	}
	detail := ": " + c.Message
	if why := a.mayStillGetNode(pod, c); why != "" {
		return &stuck{what: "are Pending, " + why, detail: detail, fix: "Look again later.", severity: SeverityInfo}
	}
	for _, u := range unscheduled {
		if !strings.Contains(c.Message, u.text) {
			continue
		}
		s := &stuck{what: "are Pending: " + u.cause, detail: detail, fix: u.fix}
		switch events := a.facts.Events; {
		case !u.taken:
		case o.Pool != nil && (o.Pool.Static || o.Pool.Config.Autoscaler == config.NoAutoscaler):
			return cannotGrow(a, o, "wait for one of the pool's nodes, whose number is fixed", detail, "Add nodes if the pool should be larger.")
		case !events.KnownIn(pod.Namespace):
			s.severity = SeverityWarning
			s.detail += fmt.Sprintf(" (it may be at the NodePool's limit: Events: %s)", events.ReasonIn(pod.Namespace))
		}
		return s
	}
	return &stuck{what: "are Pending", detail: detail}
}

// cannotGrow is about pods that wait while their pool cannot grow. That is normal only where Workspaces are on the pool's
// nodes; without any the placeholders alone are too many, and nothing changes by itself.
func cannotGrow(a *Audit, o *Object, what, detail, fix string) *stuck {
	s := &stuck{what: what, detail: detail, fix: fix, severity: SeverityInfo}
	if o.Pool == nil || !a.facts.Nodes.Known() {
		return s
	}
	taken := slices.ContainsFunc(a.Workspaces, func(w *Object) bool {
		node := a.facts.Nodes.Get(w.Spec.NodeName)
		return node != nil && o.Pool.HasNode(node)
	})
	switch nodes := len(a.Nodes(o.Pool)); {
	case taken:
		s.what += ", which is normal: Workspaces have its nodes"
	case nodes > 0: // that Workspaces, or something else, could have
		s.what += fmt.Sprintf(", and no Workspace is on its nodes (%d)", nodes)
		s.fix, s.severity = "Ask for fewer placeholders, or let the pool have more nodes (see nodepool-limits).", SeverityWarning
	}
	return s
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
		return "and nothing says since when: a new node takes 5 to 7 minutes"
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
	return a.lastEvent(pod.Namespace, func(event *eventsv1.Event) bool {
		if event.Regarding.Kind != "Pod" || event.Regarding.Name != pod.Name || event.Regarding.UID != "" && event.Regarding.UID != pod.UID {
			return false
		}
		switch event.Reason {
		case "Nominated", "TriggeredScaleUp", "NotTriggerScaleUp":
			return true
		case "FailedScheduling": // the scheduler says so too
			return strings.Contains(event.ReportingController+event.DeprecatedSource.Component, "karpenter")
		default:
			return false
		}
	})
}
