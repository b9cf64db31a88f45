package audits

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/policy"
)

const (
	// most is how many Events one audit makes: a cluster full of errors must not be full of Events as well.
	most = 100
	// remembered is how many errors that are fixed are distinguished from new ones, should they come back.
	remembered = 10_000
)

// announcer makes an Event about each new error. An error that the audit before found too is not new; numbers in its message
// may differ. Which errors earlier leaders have reported this one cannot know, so the name of an Event says which error it is:
// it is made only where the API server does not have it, which keeps Events for an hour as a rule.
type announcer struct {
	events        recorder
	configuration client.ObjectKey
	// standing are the errors at the last audit that have an Event, ever all for which this leader made one; by name.
	standing, ever map[string]bool
}

// announce makes the Events, of the worst-placed objects first; left is how many have to wait for the next audit.
func (t *announcer) announce(report *audit.Report, facts *cluster.Snapshot) (made, left int) {
	standing, count := map[string]bool{}, map[string]int{}
	for i := range report.Findings {
		f := &report.Findings[i]
		if f.Severity != policy.SeverityError {
			continue
		}
		about := reference(f, facts, t.configuration)
		id := identity(f, about.UID)
		count[id]++
		name := eventName(id, count[id])
		switch {
		case t.standing[name]:
		case made == most:
			left++
			continue
		default:
			t.event(name, about, f)
			made++
		}
		standing[name] = true
	}
	t.standing = standing
	return made, left
}

// event makes one under its name, unless this leader knows that the error has come back: the Event of the first time may
// still be there.
func (t *announcer) event(name string, about *corev1.ObjectReference, f *audit.Finding) {
	const action = "Audit"
	reason, note := reasonOf(f.Rule), strings.TrimSuffix(f.Message, ".")+". "+f.Fix
	if about.Kind != f.Kind && f.Kind != "" {
		note = f.Kind + " " + f.Name + ": " + note
	}
	if t.ever[name] {
		t.events.Eventf(about, nil, corev1.EventTypeWarning, reason, action, "%s", note)
		return
	}
	if t.ever == nil || len(t.ever) >= remembered {
		t.ever = map[string]bool{}
	}
	t.ever[name] = true
	t.events.Once(name, about, corev1.EventTypeWarning, reason, action, note)
}

// identity is what an error keeps while its message changes.
func identity(f *audit.Finding, uid types.UID) string {
	return strings.Join([]string{f.Rule, f.Kind, f.Namespace, f.Name, string(uid), f.Field}, "\x00")
}

// eventName is that of the nth error of an identity.
func eventName(identity string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", identity, n))
	return "warmpool-audit-" + hex.EncodeToString(sum[:12])
}

// reasonOf is the rule as reasons of Events are written: placeholder-size is PlaceholderSize.
func reasonOf(rule string) string {
	var reason strings.Builder
	for word := range strings.SplitSeq(rule, "-") {
		if word != "" {
			reason.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return reason.String()
}

// reference is the finding's object as kubectl describe finds its Events; the configuration where there is none.
func reference(f *audit.Finding, facts *cluster.Snapshot, configuration client.ObjectKey) *corev1.ObjectReference {
	key := f.Name
	if f.Namespace != "" {
		key = f.Namespace + "/" + f.Name
	}
	ref := func(apiVersion string, uid types.UID) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: apiVersion, Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, UID: uid}
	}
	switch f.Kind {
	case "Deployment":
		return ref(appsv1.SchemeGroupVersion.String(), uidOf(facts.Deployments.Get(key)))
	case "Pod":
		return ref("v1", uidOf(facts.Pods.Get(key)))
	case "ConfigMap":
		return ref("v1", uidOf(facts.ConfigMaps.Get(key)))
	case "Node":
		return ref("v1", types.UID(f.Name)) // as the kubelet does it
	case "PriorityClass":
		return ref(schedulingv1.SchemeGroupVersion.String(), uidOf(facts.PriorityClasses.Get(key)))
	case "MutatingWebhookConfiguration":
		return ref(admissionregistrationv1.SchemeGroupVersion.String(), uidOf(facts.MutatingWebhooks.Get(key)))
	case "ValidatingWebhookConfiguration":
		return ref(admissionregistrationv1.SchemeGroupVersion.String(), uidOf(facts.ValidatingWebhooks.Get(key)))
	case cluster.NodePoolGroupKind.Kind:
		if np := facts.NodePools.Get(key); np != nil {
			return ref(np.APIVersion, np.UID)
		}
	case cluster.WorkspaceTemplateGroupKind.Kind:
		if template := facts.Templates.Get(key); template != nil {
			return ref(template.APIVersion, template.UID)
		}
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: configuration.Namespace, Name: configuration.Name}
}

// uidOf is empty for an object that is not there.
func uidOf[T any, P interface {
	*T
	client.Object
}](object P) types.UID {
	if object == nil {
		return ""
	}
	return object.GetUID()
}
