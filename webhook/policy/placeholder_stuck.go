package policy

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: the pods of placeholder Deployments.
// Requires: that none waits for what does not come: a node, an image, a command that can be started.
// Why: the Deployment only says that replicas are missing. A pod that waits for a node that is on its way, or at the limit of
// a NodePool whose nodes Workspaces have, is as it should be and reported as such; so is one that has waited for less than
// a new node takes.
var placeholderStuck = &Rule{
	ID:        "placeholder-stuck",
	Summary:   "No pod of it is stuck: without a node (taint, affinity, size), without its image, or at a pre-pull command that fails. Waiting at a NodePool's limit is normal where Workspaces have its nodes.",
	Fix:       "Look at the pod: kubectl describe says what it waits for.",
	Subject:   PlaceholderDeployment,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    checkStuck,
}

// stuck is why a pod is not warm.
type stuck struct {
	// what completes "2 of 3 pods …" and is the same for all pods of a group; detail is the oldest's own.
	what, detail, fix string
	severity          Severity
}

func checkStuck(a *Audit) []Finding {
	findings := unread("Pods", a.facts.Pods)
	for _, o := range a.placeholders {
		if reason := a.facts.Pods.ReasonIn(o.Namespace); reason != "" && len(findings) == 0 {
			f := notVerified(field.NewPath("status", "readyReplicas"), "Pods: "+reason)
			findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()))
			continue
		}
		found := stuckPods(a, o)
		if f, ok := a.refusedPods(o); ok {
			found = append(found, f)
		}
		for _, f := range found {
			findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()))
		}
	}
	return findings
}

// stuckPods are the reasons why pods of a placeholder are stuck, that of the oldest first.
func stuckPods(a *Audit, o *Object) []Finding {
	type group struct {
		stuck
		oldest *corev1.Pod
		count  int
	}
	var groups []*group
	byReason := map[string]*group{}
	pods := a.pods(o)
	for _, pod := range pods {
		s, ok := whyStuck(a, o, pod)
		if !ok {
			continue
		}
		g := byReason[s.what]
		if g == nil {
			g = &group{stuck: s, oldest: pod}
			groups, byReason[s.what] = append(groups, g), g
		}
		g.count++
	}
	var findings []Finding
	for _, g := range groups {
		since := ""
		if created := g.oldest.CreationTimestamp; !created.IsZero() {
			since = " since " + created.UTC().Format(time.RFC3339)
		}
		f := invalid(field.NewPath("status", "unavailableReplicas"), g.count, fmt.Sprintf("%d of %d pods %s; the oldest is %s%s%s",
			g.count, len(pods), g.what, g.oldest.Name, since, clip(g.detail)))
		f.Severity, f.Fix = g.severity, g.fix
		findings = append(findings, f)
	}
	return findings
}

// whyStuck looks for the first thing that a pod needs and does not get: a node, then its containers in their order.
func whyStuck(a *Audit, o *Object, pod *corev1.Pod) (s stuck, found bool) {
	if pod.Spec.NodeName == "" {
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return a.whyUnscheduled(o, pod, c), true
			}
		}
		return stuck{}, false
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if s, found := whyNotStarted(&statuses[i]); found {
				return s, true
			}
		}
	}
	return stuck{}, false
}

func whyNotStarted(status *corev1.ContainerStatus) (s stuck, found bool) {
	waiting := status.State.Waiting
	ended := status.State.Terminated
	if waiting != nil {
		ended = status.LastTerminationState.Terminated
	}
	switch {
	case waiting != nil && isPullFailure(waiting.Reason):
		consequence := ""
		if prepull.Owns(status.Name) {
			consequence = ": pool warm, image cold"
		}
		return stuck{
			what:   fmt.Sprintf("cannot pull %s (%s)%s", status.Image, status.Name, consequence),
			detail: said(waiting.Reason, waiting.Message),
			fix:    "Check that the image exists and that the placeholder's namespace has a pull secret for its registry.",
		}, true
	case waiting != nil && waiting.Reason == "RunContainerError":
		return commandFailed(status, waiting.Reason, waiting.Message), true
	case ended != nil && ended.ExitCode != 0:
		return commandFailed(status, fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode), ended.Message), true
	case waiting != nil && (waiting.Reason == "CreateContainerConfigError" || waiting.Reason == "CreateContainerError"):
		return stuck{what: fmt.Sprintf("cannot create container %s", status.Name), detail: said(waiting.Reason, waiting.Message)}, true
	default:
		return stuck{}, false
	}
}

// commandFailed is a pod whose image is on its node: what cannot be started was pulled.
func commandFailed(status *corev1.ContainerStatus, reason, message string) stuck {
	return stuck{
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

func isPullFailure(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return true
	}
	return false
}
