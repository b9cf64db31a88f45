package policy

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/prepull"
)

// Applies to: the pods of placeholder Deployments.
// Requires: that none waits for what does not come: a node, an image, a command that can be started.
// Why: the Deployment only says that replicas are missing. A pod that waits for a node that is on its way, or at the limit of
// a NodePool whose nodes Workspaces have, is as it should be and reported as such; so is one that has waited for less than
// a new node takes.
var placeholderStuck = &Rule{
	ID:       "placeholder-stuck",
	Summary:  "No pod of it is stuck: without a node (taint, affinity, size), without its image, or at a pre-pull command that fails. Waiting at a NodePool's limit is normal where Workspaces have its nodes.",
	Fix:      "Look at the pod: kubectl describe says what it waits for.",
	Subject:  PlaceholderDeployment,
	Severity: SeverityError,
	audit:    auditStuck,
}

var unavailablePath = field.NewPath("status", "unavailableReplicas")

// stuck is why a pod is not warm.
type stuck struct {
	// what completes "2 of 3 pods …" and is the same for all pods of a group; detail is the oldest's own.
	what, detail, fix string
	severity          Severity
}

func auditStuck(a *Audit) {
	known := !a.unread("Pods", a.facts.Pods)
	for _, o := range a.Placeholders {
		if reason := a.facts.Pods.ReasonIn(o.Namespace); known && reason != "" {
			o.notVerified(field.NewPath("status", "readyReplicas"), "Pods: %s", reason)
			continue
		}
		auditStuckPods(a, o)
		auditRefusedPods(a, o)
	}
}

// auditStuckPods reports why pods of a placeholder are stuck, the reason of the oldest first.
func auditStuckPods(a *Audit, o *Object) {
	type group struct {
		*stuck
		oldest *corev1.Pod
		count  int
	}
	var groups []*group
	byReason := map[string]*group{}
	pods := a.Pods(o)
	for _, pod := range pods {
		s := whyStuck(a, o, pod)
		if s == nil {
			continue
		}
		g := byReason[s.what]
		if g == nil {
			g = &group{stuck: s, oldest: pod}
			groups, byReason[s.what] = append(groups, g), g
		}
		g.count++
	}
	for _, g := range groups {
		f := o.invalid(unavailablePath, g.count, "%d of %d pods %s; the oldest is %s%s%s",
			g.count, len(pods), g.what, g.oldest.Name, since(g.oldest.CreationTimestamp), clip(g.detail))
		f.Severity, f.Fix = g.severity, g.fix
	}
}

// whyStuck looks for the first thing that a pod needs and does not get: a node, then its containers in their order; nil: it
// has all.
func whyStuck(a *Audit, o *Object, pod *corev1.Pod) *stuck {
	if pod.Spec.NodeName == "" {
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return whyUnscheduled(a, o, pod, c)
			}
		}
		return nil
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range statuses {
		if s := whyNotStarted(&statuses[i]); s != nil {
			return s
		}
	}
	return nil
}

func whyNotStarted(status *corev1.ContainerStatus) *stuck {
	waiting := status.State.Waiting
	ended := status.State.Terminated
	if waiting != nil {
		ended = status.LastTerminationState.Terminated
	}
	switch {
	case waiting != nil && prepull.IsPullFailure(waiting.Reason):
		consequence := ""
		if prepull.Owns(status.Name) {
			consequence = ": pool warm, image cold"
		}
		return &stuck{
			what:   fmt.Sprintf("cannot pull %s (%s)%s", status.Image, status.Name, consequence),
			detail: said(waiting.Reason, waiting.Message),
			fix:    "Check that the image exists and that the placeholder's namespace has a pull secret for its registry.",
		}
	case waiting != nil && waiting.Reason == "RunContainerError":
		return commandFailed(status, waiting.Reason, waiting.Message)
	case ended != nil && ended.ExitCode != 0:
		return commandFailed(status, fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode), ended.Message)
	case waiting != nil && (waiting.Reason == "CreateContainerConfigError" || waiting.Reason == "CreateContainerError"):
		return &stuck{what: "cannot create container " + status.Name, detail: said(waiting.Reason, waiting.Message)}
	default:
		return nil
	}
}

// commandFailed is a pod whose image is on its node: what cannot be started was pulled.
func commandFailed(status *corev1.ContainerStatus, reason, message string) *stuck {
	return &stuck{
		what:     fmt.Sprintf("hold a node with the image %s present, but the command of %s failed", status.Image, status.Name),
		detail:   said(reason, message),
		fix:      fmt.Sprintf("Give %s a command that the image has and that ends with 0; it need not be a shell. The image stays on the node meanwhile: delete nothing.", status.Name),
		severity: SeverityWarning,
	}
}

func said(reason, message string) string {
	if message == "" {
		return ": " + reason
	}
	return ": " + reason + ": " + message
}

// auditRefusedPods reports a placeholder without any pod, for which the API server refuses each one that its ReplicaSet makes.
// Where the Deployment itself says so, placeholder-pods has it.
func auditRefusedPods(a *Audit, o *Object) {
	if len(a.Pods(o)) > 0 || isPaused(o.Deployment) || podFailure(o.Deployment) != nil {
		return
	}
	last := a.lastEvent(o.Namespace, func(event *eventsv1.Event) bool {
		return event.Reason == "FailedCreate" && event.Regarding.Kind == "ReplicaSet" && deploymentOfReplicaSet(event.Regarding.Name) == o.Name
	})
	if last != nil {
		o.invalid(unavailablePath, ReplicasOf(o.Deployment), "it has no pod at all: %s", clip(last.Note)).
			withFix("Correct what the API server refuses; see placeholder-pods, placeholder-namespace and placeholder-priority.")
	}
}

// lastEvent is the newest event of a namespace that is meant; nil: none.
func (a *Audit) lastEvent(namespace string, meant func(*eventsv1.Event) bool) *eventsv1.Event {
	var last *eventsv1.Event
	for _, event := range a.facts.Events.Prefix(namespace + "/") {
		if meant(event) && (last == nil || !eventTime(event).Before(eventTime(last))) {
			last = event
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
