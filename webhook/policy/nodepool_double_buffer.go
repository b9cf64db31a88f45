package policy

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
)

// Applies to: CapacityBuffers.
// Requires: that none is made from a placeholder, keeps room in a pool with placeholders, or stands in their namespace with pods
// that may go to their pool.
// Why: such a buffer keeps the room that placeholders keep already. Its pods are virtual: they pull no image, so what they keep is
// cold, and they have no priority that a Workspace could preempt.
var nodePoolDoubleBuffer = &Rule{
	ID:       "nodepool-double-buffer",
	Summary:  "No CapacityBuffer keeps room beside placeholders: the room is paid twice, and its virtual pods pull no image.",
	Fix:      "Remove the CapacityBuffer; or, where Workspaces start fast enough on nodes without their image, the placeholders.",
	Subject:  WarmPool,
	Severity: SeverityInfo,
	audit: func(a *Audit) {
		a.unread("CapacityBuffers", a.facts.CapacityBuffers)
		for _, key := range a.facts.CapacityBuffers.AllMalformed() {
			namespace, name, _ := strings.Cut(key, "/")
			a.about("CapacityBuffer", namespace, name, "").notVerified(podSpecPath, "%s", a.facts.CapacityBuffers.Malformed(key))
		}
		for _, buffer := range a.facts.CapacityBuffers.All() {
			judgeBuffer(a, buffer)
		}
	},
}

// judgeBuffer reports, once for each pool, whose placeholders the buffer doubles.
func judgeBuffer(a *Audit, buffer *cluster.CapacityBuffer) {
	about := a.about("CapacityBuffer", buffer.Namespace, buffer.Name, "")
	path, value := field.NewPath("spec", "podTemplateRef", "name"), buffer.PodTemplate
	switch {
	case buffer.ScalableName != "":
		path, value = field.NewPath("spec", "scalableRef", "name"), buffer.ScalableName
	case value == "":
		path = podSpecPath
	}
	spec, unread := a.virtualPod(buffer)
	if unread != "" {
		about.notVerified(path, "%s", unread)
		return
	}
	seen := map[string]bool{}
	for _, o := range a.doubledBy(buffer, spec) {
		if seen[o.pool] {
			continue
		}
		seen[o.pool] = true
		how := "beside"
		if madeFrom(buffer, o) {
			how = "made from"
		}
		about.pool = o.pool
		about.invalid(path, value, "keeps room with virtual pods, %s placeholder %s/%s: the room is kept twice, and virtual pods pull no image, so a Workspace that takes their room waits for the pull", how, o.Namespace, o.Name)
	}
}

// virtualPod is what the buffer's pods look like; nil where it names nothing that exists. unread says why that cannot be
// told.
func (a *Audit) virtualPod(buffer *cluster.CapacityBuffer) (spec *corev1.PodSpec, unread string) {
	switch {
	case buffer.ScalableName != "":
		if d := a.facts.Deployments.Get(buffer.Namespace + "/" + buffer.ScalableName); d != nil && buffer.ScalableKind == "Deployment" {
			return &d.Spec.Template.Spec, ""
		}
	case buffer.PodTemplate != "":
		key := buffer.Namespace + "/" + buffer.PodTemplate
		if template := a.facts.PodTemplates.Get(key); template != nil {
			return &template.Template.Spec, ""
		}
		return nil, a.facts.PodTemplates.Unreadable("PodTemplates", "PodTemplate "+key, key)
	}
	return nil, ""
}

// doubledBy are the placeholders beside a buffer: the one that it is made from, else those of the pool that its pods are
// kept in, else those of its namespace whose pools its pods may go to.
func (a *Audit) doubledBy(buffer *cluster.CapacityBuffer, spec *corev1.PodSpec) []*Object {
	var kept, beside []*Object
	for _, o := range a.Placeholders {
		if madeFrom(buffer, o) {
			return []*Object{o}
		}
		if spec != nil && o.Pool != nil {
			fit := o.Pool.Fit(spec)
			if fit.Conflict {
				continue
			}
			if fit.Pinned || !fit.Unrestricted && len(fit.Loose) == 0 {
				kept = append(kept, o)
			}
		}
		if o.Namespace == buffer.Namespace {
			beside = append(beside, o)
		}
	}
	if len(kept) > 0 {
		return kept
	}
	return beside
}

func madeFrom(buffer *cluster.CapacityBuffer, o *Object) bool {
	return buffer.ScalableKind == "Deployment" && o.Name == buffer.ScalableName && o.Namespace == buffer.Namespace
}
