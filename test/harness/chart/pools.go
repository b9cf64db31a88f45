package chart

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The pool whose objects every pool's are made of: it has all that a pool can have.
const model = "gpu"

// pools writes what there is for each placeholder, which is the dot. The list is made by the helper warmpool.placeholders.
func (c *generator) pools() error {
	const each = "{{- range include \"warmpool.placeholders\" . | fromJsonArray }}\n"
	for file, names := range map[string][]string{
		"placeholders": {"Deployment", placeholders + "/spaces-placeholder-" + model, "PodDisruptionBudget", placeholders + "/spaces-placeholder-" + model},
		"scaling":      {"ConfigMap", placeholders + "/spaces-overprovision-cpa-config-" + model, "Deployment", placeholders + "/spaces-overprovisioning-cpa-" + model},
	} {
		lines := ""
		for i := 0; i < len(names); i += 2 {
			text, err := c.poolObject(names[i] + " " + names[i+1])
			if err != nil {
				return err
			}
			lines += text
		}
		if file == "scaling" {
			lines = inCase(".scaling", lines)
		}
		c.write(file, each+lines+"{{- end }}\n")
	}
	return c.scalingRights()
}

// poolObject is the model's object, with what the placeholder says in it.
func (c *generator) poolObject(name string) (string, error) {
	found := c.built.find(embedded, name)
	if found == nil {
		return "", fmt.Errorf("%s is not in %s any more", name, embedded)
	}
	object := found.DeepCopy()
	var err error
	switch kind, own, _ := strings.Cut(name, " "); {
	case kind == "ConfigMap":
		object.Object["data"] = c.value(".scaling | toJson")
	case kind == "Deployment" && strings.Contains(own, "cpa"):
		err = c.scaler(object)
	case kind == "Deployment":
		err = c.placeholder(object)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	object.Object, _ = walk(object.Object, c.poolNames).(map[string]any)
	c.rename(object)
	text, err := c.text(object.Object)
	return "---\n" + text, err
}

// poolNames puts in the names that have the pool's in them.
func (c *generator) poolNames(path, s string) string {
	switch {
	case strings.HasSuffix(s, "spaces-placeholder-"+model):
		return strings.TrimSuffix(s, "spaces-placeholder-"+model) + c.value(".name")
	case strings.HasSuffix(path, ".type") && s == model:
		return c.value(".type | quote")
	case strings.HasSuffix(path, ".warmpool.sh/pool"):
		return c.value(".pool | quote")
	case strings.HasSuffix(s, "-"+model):
		return strings.TrimSuffix(s, model) + c.value(".type")
	}
	return s
}

func (c *generator) placeholder(o *unstructured.Unstructured) error {
	spec, container, err := podOf(o)
	if err != nil {
		return err
	}
	metadata, _, err := unstructured.NestedMap(o.Object, "spec", "template", "metadata")
	if err != nil {
		return err
	}
	annotations, err := c.text(map[string]any{"annotations": metadata["annotations"]})
	if err != nil {
		return err
	}
	delete(metadata, "annotations")
	metadata[c.block(inCase(".karpenter", annotations))] = ""
	if err := unstructured.SetNestedMap(o.Object, metadata, "spec", "template", "metadata"); err != nil {
		return err
	}
	pull, ok := spec["initContainers"].([]any)
	if !ok || len(pull) != 1 {
		return fmt.Errorf("it has %d init containers, and the chart knows of one", len(pull))
	}
	first, _ := pull[0].(map[string]any)
	first["image"] = c.value("$image | quote")
	first["name"] = fmt.Sprint(first["name"]) + c.value(`if $i }}-{{ add $i 1 }}{{ end`)
	images, err := c.text(pull)
	if err != nil {
		return err
	}
	delete(spec, "initContainers")
	spec[c.block(inCase(".images", "initContainers:\n{{- range $i, $image := .images }}\n"+images+"{{- end }}\n"))] = ""
	delete(spec, "tolerations")
	spec[c.block(inCase(".tolerations", "tolerations: {{ .tolerations | toJson }}\n"))] = ""
	container["image"] = c.value("$.Values.images.pause | quote")
	resources, _ := container["resources"].(map[string]any)
	resources["requests"], resources["limits"] = c.value(".requests | toJson"), c.value(".requests | toJson")
	if err := unstructured.SetNestedField(o.Object, "", "spec", c.block(inCase(`hasKey . "replicas"`, "replicas: {{ .replicas }}\n"))); err != nil {
		return err
	}
	terms := []any{map[string]any{"matchExpressions": c.value(".nodes | toJson")}}
	return unstructured.SetNestedSlice(spec, terms, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
}

func (c *generator) scaler(o *unstructured.Unstructured) error {
	_, container, err := podOf(o)
	if err != nil {
		return err
	}
	args, _ := container["args"].([]any)
	if len(args) == 0 || !strings.HasPrefix(fmt.Sprint(args[0]), "--nodelabels=") {
		return fmt.Errorf("--nodelabels is not the first of its arguments")
	}
	args[0] = c.value(`printf "--nodelabels=%s" .nodeLabels | quote`)
	container["image"] = c.value("$.Values.images.autoscaler | quote")
	return nil
}

// scalingRights are CPA's, over the placeholders that it scales.
func (c *generator) scalingRights() error {
	var objects []*unstructured.Unstructured
	for _, name := range []string{"ServiceAccount " + placeholders, "ClusterRole ", "ClusterRoleBinding ", "Role " + placeholders, "RoleBinding " + placeholders} {
		found := c.built.find(embedded, name+"/spaces-cpa")
		if found == nil {
			return fmt.Errorf("%s/spaces-cpa is not in %s any more", name, embedded)
		}
		objects = append(objects, found.DeepCopy())
	}
	return c.rights("scaling", ".scaling", objects)
}

// demandRights are warmpool's own, over the placeholders whose number it sets.
func (c *generator) demandRights(manifests string) error {
	all, err := withComponent(manifests, "demand")
	if err != nil {
		return err
	}
	return c.rights("demand", ".byDemand", slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return o.GetName() != "warmpool-demand" }))
}

// rights writes objects that are there where some placeholder has the field; the names of placeholders in them are those of all
// that have it.
func (c *generator) rights(file, field string, objects []*unstructured.Unstructured) error {
	var lines strings.Builder
	for _, object := range objects {
		if rules, ok, err := unstructured.NestedSlice(object.Object, "rules"); err != nil {
			return err
		} else if ok {
			for _, one := range rules {
				rule, _ := one.(map[string]any)
				names, _ := rule["resourceNames"].([]any)
				if len(names) == 0 {
					continue
				}
				prefix, _ := strings.CutSuffix(fmt.Sprint(names[len(names)-1]), model)
				name := prefix + "{{ $p.type }}"
				if prefix == "spaces-placeholder-" {
					name = "{{ $p.name }}"
				}
				rule["resourceNames"] = c.put(mark{text: "[{{ range $i, $p := $these }}{{ if $i }}, {{ end }}" + name + "{{ end }}]"})
			}
			if err := unstructured.SetNestedSlice(object.Object, rules, "rules"); err != nil {
				return err
			}
		}
		c.rename(object)
		text, err := c.text(object.Object)
		if err != nil {
			return err
		}
		lines.WriteString("---\n" + text)
	}
	c.write(file, "{{- $these := list }}\n{{- range include \"warmpool.placeholders\" . | fromJsonArray }}\n{{- if "+field+" }}\n{{- $these = append $these . }}\n{{- end }}\n{{- end }}\n"+
		inCase("$these", lines.String()))
	return nil
}
