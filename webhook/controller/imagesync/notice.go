package imagesync

import (
	"cmp"
	"context"

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

// notice is what an Event says. It is made on the placeholder, and on the templates that it is about.
type notice struct {
	kind, reason, action, note string
	templates                  []config.TemplateRef
	// result is what the metric counts it as; empty: not at all.
	result string
	// key distinguishes it from others where the note may change while it is in force; empty: the note does.
	key string
}

func (n notice) id() string { return cmp.Or(n.key, n.note) }

// blocked is the notice of something that somebody has to fix.
func blocked(action string, templates []config.TemplateRef, note string) notice {
	return notice{kind: corev1.EventTypeWarning, reason: reasonBlocked, result: resultBlocked, action: action, note: note, templates: templates}
}

// say announces the notices of a step that were not in force at the last look.
func (c *Controller) say(ctx context.Context, e *policy.Evaluator, d *appsv1.Deployment, m *memory, s step) {
	notices := s.problems
	if s.hold != nil && s.hold.note != "" {
		notices = append(notices, *s.hold)
	}
	said := map[string]bool{}
	for _, n := range notices {
		said[n.id()] = true
		if m.said[n.id()] {
			continue
		}
		if n.reason == reasonBackOff {
			n.note += c.otherManagers(ctx, d)
		}
		c.announce(e, d, n)
		if n.result != "" {
			syncs.WithLabelValues(s.goal.pool, n.result).Inc()
		}
	}
	m.said = said
}

// announce makes the Events of a notice. Those on a template name the placeholder as related.
func (c *Controller) announce(e *policy.Evaluator, d *appsv1.Deployment, n notice) {
	c.events.Eventf(d, nil, n.kind, n.reason, n.action, "%s", n.note)
	for _, ref := range n.templates {
		if template := e.Facts().Templates.Get(ref.String()); template != nil {
			c.events.Eventf(templateReference(template), d, n.kind, n.reason, n.action, "%s", n.note)
		}
	}
}

func templateReference(t *cluster.WorkspaceTemplate) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: t.APIVersion, Kind: cluster.WorkspaceTemplateGroupKind.Kind, Namespace: t.Namespace, Name: t.Name, UID: t.UID,
	}
}
