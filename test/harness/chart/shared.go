package chart

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Names in the manifests that values may change.
const (
	ownNamespace  = "warmpool-system"
	placeholders  = "overprovisioning"
	priorityClass = "overprovisioning-placeholder"
)

// names has the expressions for them. $ is the root also where the dot is a placeholder.
var names = map[string]string{
	ownNamespace:  "$.Values.namespace",
	placeholders:  "$.Values.placeholders.namespace",
	priorityClass: "$.Values.placeholders.priorityClassName",
}

// templated is an object that is no pool's, with the values in it.
func (c *generator) templated(original *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object := original.DeepCopy()
	if err := c.special(object); err != nil {
		return nil, fmt.Errorf("%s: %w", key(original), err)
	}
	c.rename(object)
	return object, nil
}

// special puts in what is not a name.
func (c *generator) special(o *unstructured.Unstructured) error {
	switch key(o) {
	case "Deployment " + ownNamespace + "/warmpool":
		return c.deployment(o)
	case "ConfigMap " + ownNamespace + "/warmpool-config":
		return unstructured.SetNestedField(o.Object, c.value(`include "warmpool.configuration" $ | toJson`), "data", "warmpool.yaml")
	case "MutatingAdmissionPolicy /warmpool-placement":
		return unstructured.SetNestedField(o.Object, c.value(selector), "spec", "matchConstraints", "objectSelector")
	case "MutatingWebhookConfiguration /warmpool-pods":
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		webhook, ok := webhooks[0].(map[string]any)
		if !ok {
			return errors.New("its webhook is no object")
		}
		webhook["objectSelector"] = c.value(selector)
		if err := unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"); err != nil {
			return err
		}
	}
	if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
		return c.annotations(o)
	}
	return nil
}

// selector is how Workspace pods are known: as the configuration has it.
const selector = `include "warmpool.selector" $`

// annotations are those that webhook configurations have with cert-manager.
func (c *generator) annotations(o *unstructured.Unstructured) error {
	with := c.built.find(certManager, key(o))
	if with == nil || o.GetAnnotations() != nil {
		return errors.New("only with cert-manager it is to have annotations")
	}
	renamed := with.DeepCopy()
	c.rename(renamed)
	metadata, _ := renamed.Object["metadata"].(map[string]any)
	lines, err := c.text(map[string]any{"annotations": metadata["annotations"]})
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(o.Object, "", "metadata", c.block(inCase(`eq .Values.certs "cert-manager"`, lines)))
}

// rename puts in the values of names, wherever they stand.
func (c *generator) rename(o *unstructured.Unstructured) {
	labels := o.GetLabels() // these name nothing
	o.Object, _ = walk(o.Object, func(path, s string) string {
		isName := s != placeholders || strings.HasSuffix(path, ".namespace") || o.GetKind() == "Namespace" && path == ".metadata.name"
		if expression, ok := names[s]; ok && isName {
			return c.value(expression + " | quote")
		}
		for _, name := range []string{ownNamespace, priorityClass, "=" + placeholders} {
			bare := strings.TrimPrefix(name, "=")
			if strings.Contains(s, name) {
				s = strings.ReplaceAll(s, name, strings.TrimSuffix(name, bare)+c.value(names[bare]))
			}
		}
		return s
	}).(map[string]any)
	if labels != nil {
		o.SetLabels(labels)
	}
}

// walk copies a value with each string in it as f has it. Paths are of keys alone.
func walk(value any, f func(path, s string) string) any { return walkAt("", value, f) }

func walkAt(path string, value any, f func(path, s string) string) any {
	switch v := value.(type) {
	case string:
		return f(path, v)
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = walkAt(path, v[i], f)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, field := range v {
			all[name] = walkAt(path+"."+name, field, f)
		}
		return all
	default:
		return value
	}
}

// deployment is warmpool's own.
func (c *generator) deployment(o *unstructured.Unstructured) error {
	spec, container, err := podOf(o)
	if err != nil {
		return err
	}
	container["image"] = c.value("$.Values.image | quote")
	for _, list := range []string{"args", "volumeMounts"} {
		if container[list], err = c.varied(o, func(_, container map[string]any) any { return container[list] }); err != nil {
			return err
		}
	}
	if spec["volumes"], err = c.varied(o, func(spec, _ map[string]any) any { return spec["volumes"] }); err != nil {
		return err
	}
	return unstructured.SetNestedField(spec, c.value(`include "warmpool.elsewhere" $`),
		"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
}

// varied is a list of the embedded flavour's, in which what other flavours have instead or at the end is under their condition.
func (c *generator) varied(o *unstructured.Unstructured, list func(spec, container map[string]any) any) ([]any, error) {
	lists := map[string][]any{}
	for _, flavour := range flavours {
		spec, container, err := podOf(c.built.find(flavour, key(o)))
		if err != nil {
			return nil, err
		}
		lists[flavour], _ = list(spec, container).([]any)
	}
	merged := slices.Clone(lists[embedded])
	for _, flavour := range flavours[1:] {
		condition := conditions[filepath.Base(flavour)]
		for i, item := range lists[flavour] {
			if i < len(lists[embedded]) && reflect.DeepEqual(item, lists[embedded][i]) {
				continue
			}
			lines, err := c.text([]any{item})
			if err != nil {
				return nil, err
			}
			if i >= len(lists[embedded]) {
				merged = append(merged, c.block(inCase(condition, lines)))
				continue
			}
			usual, err := c.text([]any{lists[embedded][i]})
			if err != nil {
				return nil, err
			}
			merged[i] = c.block(fmt.Sprintf("{{- if %s }}\n%s{{- else }}\n%s{{- end }}", condition, lines, usual))
		}
	}
	return merged, nil
}

// podOf is the pod template's specification, and its first container.
func podOf(o *unstructured.Unstructured) (spec, container map[string]any, err error) {
	field, _, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "template", "spec")
	if err != nil {
		return nil, nil, err
	}
	spec, _ = field.(map[string]any)
	containers, _ := spec["containers"].([]any)
	if len(containers) != 1 {
		return nil, nil, fmt.Errorf("it has %d containers, and the chart knows of one", len(containers))
	}
	container, _ = containers[0].(map[string]any)
	return spec, container, nil
}
