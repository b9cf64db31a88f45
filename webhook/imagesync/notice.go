package imagesync

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// Reasons of the Events on placeholders and templates.
const (
	reasonSynced  = "ImageSynced"
	reasonBlocked = "ImageSyncBlocked"
	reasonBackOff = "ImageSyncBackOff"
	reasonWaiting = "ImageSyncWaiting"
)

// notice is what an Event says. It is told on the placeholder, and on the templates that it is about.
type notice struct {
	kind, reason, action, note string
	templates                  []config.TemplateRef
}

// blocked is the notice of something that somebody has to mend.
func blocked(action string, templates []config.TemplateRef, note string) notice {
	return notice{kind: corev1.EventTypeWarning, reason: reasonBlocked, action: action, note: note, templates: templates}
}

// say tells the notices of a step that were not in force at the last look.
func (c *Controller) say(e *policy.Evaluator, d *appsv1.Deployment, m *memory, s step) {
	notices := s.problems
	if s.hold != nil && s.hold.note != "" {
		notices = append(notices, *s.hold)
	}
	said := map[string]bool{}
	for _, n := range notices {
		said[n.note] = true
		if m.said[n.note] {
			continue
		}
		c.tell(e, d, n)
		switch n.reason {
		case reasonBlocked:
			syncs.WithLabelValues(s.goal.pool, "blocked").Inc()
		case reasonBackOff:
			syncs.WithLabelValues(s.goal.pool, "backed_off").Inc()
		}
	}
	m.said = said
}

// tell makes the Events of a notice. Those on a template name the placeholder as related: besides being true, it keeps
// those of several placeholders, or of one at several times, from being counted as one.
func (c *Controller) tell(e *policy.Evaluator, d *appsv1.Deployment, n notice) {
	c.events.Eventf(d, nil, n.kind, n.reason, n.action, "%s", note(n.note))
	for _, ref := range n.templates {
		if template := e.Facts().Templates.Get(templateKey(ref)); template != nil {
			c.events.Eventf(reference(template), d, n.kind, n.reason, n.action, "%s", note(n.note))
		}
	}
}

// note cuts a text to what an Event takes.
func note(text string) string {
	const most = 1000
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func reference(t *cluster.WorkspaceTemplate) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: t.APIVersion, Kind: cluster.WorkspaceTemplateGroupKind.Kind, Namespace: t.Namespace, Name: t.Name, UID: t.UID,
	}
}
