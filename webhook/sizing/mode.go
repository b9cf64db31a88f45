package sizing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Template is what Workspaces of a WorkspaceTemplate ask for.
type Template struct {
	// Name is NAMESPACE/NAME.
	Name string `json:"name"`
	// Default is what a Workspace asks for that says nothing, Smallest the least that it may ask for.
	Default  corev1.ResourceList `json:"default"`
	Smallest corev1.ResourceList `json:"smallest"`
}

// TemplateOf reads off what Workspaces of the template ask for.
func TemplateOf(template *cluster.WorkspaceTemplate) Template {
	standard := merged(template.DefaultResources.Requests, template.DefaultResources.Limits)
	smallest := maps.Clone(standard)
	for name, bounds := range template.Bounds {
		if bounds.Min != nil {
			smallest[name] = *bounds.Min
		}
	}
	return Template{Name: template.Namespace + "/" + template.Name, Default: standard, Smallest: smallest}
}

// ModeFault says what is wrong with a placeholder of the request, in a pool of the mode, on the shape for Workspaces of
// the template; empty: nothing. A template without default resources says nothing of its Workspaces.
func ModeFault(mode config.Mode, template Template, shape *Shape, request corev1.ResourceList) string {
	available, beside, name := shape.Available(), shape.Beside(request), shape.NameAmong(nil)
	switch {
	case len(template.Default) == 0:
		return ""
	case !Fits(template.Default, available):
		return fmt.Sprintf("no room on %s, even in the placeholder's place, for a Workspace of %s (%s): at most %s",
			name, template.Name, Quantities(template.Default), Quantities(only(available, template.Default)))
	case mode == config.Coexist && !Fits(template.Default, beside):
		return fmt.Sprintf("no room on %s beside the placeholder for a Workspace of %s (%s): at most %s",
			name, template.Name, Quantities(template.Default), Quantities(only(beside, template.Default)))
	case mode == config.Exclusive && Fits(template.Smallest, beside):
		return fmt.Sprintf("mode Exclusive, yet room on %s beside the placeholder for a Workspace of %s (%s): %s left",
			name, template.Name, Quantities(template.Smallest), Quantities(only(beside, template.Smallest)))
	default:
		return ""
	}
}

// only keeps the resources that the other list names.
func only(list, named corev1.ResourceList) corev1.ResourceList {
	kept := corev1.ResourceList{}
	for name := range named {
		if quantity, ok := list[name]; ok {
			kept[name] = quantity
		}
	}
	return kept
}

// Quantities writes the resources of a list, but for the number of pods: cpu 4, memory 16Gi.
func Quantities(list corev1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		if name != corev1.ResourcePods {
			parts = append(parts, string(name)+" "+quantity.String())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
