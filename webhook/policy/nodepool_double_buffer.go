package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Applies to: CapacityBuffers.
// Requires: none is made from a placeholder, or stands in a namespace of placeholders.
// Why: it keeps the room that placeholders keep already. Its pods are virtual: they pull no image, so what they keep is
// cold, and they have no priority that a Workspace could preempt.
var nodePoolDoubleBuffer = &Rule{
	ID:        "nodepool-double-buffer",
	Summary:   "No CapacityBuffer keeps room beside placeholders: the room is paid twice, and its virtual pods pull no image.",
	Fix:       "Remove the CapacityBuffer; or, where Workspaces start fast enough on nodes without their image, the placeholders.",
	Subject:   WarmPool,
	Action:    config.Audit,
	Severity:  SeverityInfo,
	AuditOnly: true,
	around:    checkDoubleBuffers,
}

func checkDoubleBuffers(a *Audit) []Finding {
	findings := unread("CapacityBuffers", a.facts.CapacityBuffers)
	for _, key := range a.facts.CapacityBuffers.AllMalformed() {
		namespace, name, _ := strings.Cut(key, "/")
		findings = append(findings, notVerified(field.NewPath("spec"), a.facts.CapacityBuffers.Malformed(key)).about("CapacityBuffer", namespace, name, ""))
	}
	for _, buffer := range a.facts.CapacityBuffers.All() {
		for _, f := range buffered(a, buffer) {
			findings = append(findings, f.about("CapacityBuffer", buffer.Namespace, buffer.Name, f.Pool))
		}
	}
	return findings
}

// buffered are the pools, one finding each, whose placeholders the buffer doubles: that of the placeholder that it is
// made from, else those that have placeholders in its namespace.
func buffered(a *Audit, buffer *cluster.CapacityBuffer) []Finding {
	var beside []*Object
	for _, o := range a.placeholders {
		if o.Namespace == buffer.Namespace {
			beside = append(beside, o)
		}
	}
	path, value := field.NewPath("spec", "podTemplateRef", "name"), buffer.PodTemplate
	switch {
	case buffer.ScalableName != "":
		path, value = field.NewPath("spec", "scalableRef", "name"), buffer.ScalableName
	case value == "":
		path = field.NewPath("spec")
	}
	isScalable := func(o *Object) bool { return buffer.ScalableKind == "Deployment" && o.Name == buffer.ScalableName }
	if i := slices.IndexFunc(beside, isScalable); i >= 0 {
		beside = beside[i : i+1]
	}
	var findings []Finding
	seen := map[string]bool{}
	for _, o := range beside {
		pool := o.PoolName()
		if seen[pool] {
			continue
		}
		seen[pool] = true
		how := "beside"
		if isScalable(o) {
			how = "made from"
		}
		f := invalid(path, value, fmt.Sprintf("keeps room with virtual pods, %s placeholder %s: the room is kept twice, and virtual pods pull no image, so a Workspace that takes their room waits for the pull", how, o.Name))
		f.Pool = pool
		findings = append(findings, f)
	}
	return findings
}
