// Package chart turns the kustomizations of manifests into the templates of the Helm chart, so that both have one source:
// what is true of every cluster is written in manifests/base and its components alone, and what the values say is put in its
// place here.
package chart

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/test/harness/install"
)

// The kustomizations that differ in where certificates come from and in what places pods.
const (
	embedded    = "overlays/embedded"
	certManager = "overlays/cert-manager"
	celPolicy   = "overlays/cel"
	static      = "variants/static-policy"
)

var flavours = []string{embedded, certManager, celPolicy, static}

// conditions say when an object is rendered, by the flavours that have it.
var conditions = map[string]string{
	"embedded, cert-manager, cel, static-policy": "",
	"embedded, cel, static-policy":               `eq $.Values.certs "embedded"`,
	"cert-manager":                               `eq $.Values.certs "cert-manager"`,
	"embedded, cert-manager":                     `eq $.Values.placement "webhook"`,
	"cel, static-policy":                         `ne $.Values.placement "webhook"`,
	"cel":                                        `eq $.Values.placement "cel"`,
	"static-policy":                              `eq $.Values.placement "static"`,
}

// kustomizations are what the manifests render to, by folder.
type kustomizations map[string][]*unstructured.Unstructured

func (k kustomizations) find(folder, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(k[folder], func(o *unstructured.Unstructured) bool { return key(o) == name })
	if i < 0 {
		return nil
	}
	return k[folder][i]
}

// generator writes the templates.
type generator struct {
	marks
	built kustomizations
	files map[string]*strings.Builder
}

// Templates are the generated files of the chart's folder templates, by name. manifests is the folder of the repository.
func Templates(manifests string) (map[string]string, error) {
	c := &generator{built: kustomizations{}, files: map[string]*strings.Builder{}}
	for _, name := range flavours {
		objects, err := install.Render(filepath.Join(manifests, name))
		if err != nil {
			return nil, err
		}
		c.built[name] = objects
	}
	for _, group := range c.built.grouped() {
		condition, ok := conditions[group.in]
		if !ok {
			return nil, fmt.Errorf("%s is in %s alone: say in conditions when the chart renders it", key(group.object), group.in)
		}
		if expression, ok := names[group.object.GetName()]; ok && group.object.GetNamespace() == "" {
			// What was there before is others', and stays when the release goes.
			condition = fmt.Sprintf(`include "warmpool.makes" (dict "root" $ "apiVersion" %q "kind" %q "name" %s)`, group.object.GetAPIVersion(), group.object.GetKind(), expression)
		}
		if err := c.add(fileOf(group.object, conditions[group.in]), group.object, condition); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(c.components(manifests), c.pools(), c.demandRights(manifests)); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for name, text := range c.files {
		texts[name+".yaml"] = header + text.String()
	}
	return texts, nil
}

// components adds what values bring in.
func (c *generator) components(manifests string) error {
	for value, component := range map[string]string{"monitoring": "monitoring", "networkPolicy": "networkpolicy"} {
		objects, err := withComponent(manifests, component)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if c.built.find(embedded, key(object)) != nil {
				continue
			}
			if err := c.add(component, object, "$.Values."+value); err != nil {
				return err
			}
		}
	}
	return nil
}

const header = "{{- /* Written by make docs from manifests/base and what is beside it: edit there. */ -}}\n"

// add appends an object that is no pool's to a file.
func (c *generator) add(file string, object *unstructured.Unstructured, condition string) error {
	if file == "" {
		return nil
	}
	templated, err := c.templated(object)
	if err != nil {
		return err
	}
	text, err := c.text(templated.Object)
	if err != nil {
		return err
	}
	c.write(file, inCase(condition, "---\n"+text))
	return nil
}

func (c *generator) write(file, text string) {
	if c.files[file] == nil {
		c.files[file] = &strings.Builder{}
	}
	c.files[file].WriteString(text)
}

// grouped is an object, and the flavours that have it.
type grouped struct {
	object *unstructured.Unstructured
	in     string
}

// grouped are the objects of all flavours, each once; what the templates change in an object does not make it another.
func (k kustomizations) grouped() []grouped {
	var groups []grouped
	for _, flavour := range flavours {
		for _, object := range k[flavour] {
			i := slices.IndexFunc(groups, func(g grouped) bool {
				return key(g.object) == key(object) && (varies(object) || reflect.DeepEqual(g.object, object))
			})
			if i < 0 {
				groups = append(groups, grouped{object: object, in: filepath.Base(flavour)})
			} else {
				groups[i].in += ", " + filepath.Base(flavour)
			}
		}
	}
	return groups
}

// varies tells that flavours differ in the object, which templated sees to.
func varies(o *unstructured.Unstructured) bool {
	return key(o) == "Deployment warmpool-system/warmpool" || strings.HasSuffix(o.GetKind(), "WebhookConfiguration")
}

// fileOf is the file that the object is in; none where it is a pool's.
func fileOf(o *unstructured.Unstructured, condition string) string {
	switch {
	case strings.HasPrefix(o.GetName(), "spaces-"):
		return ""
	case condition != "":
		return strings.NewReplacer("eq $.Values.", "", "ne $.Values.", "not-", `"`, "", " ", "-").Replace(condition)
	default:
		return "warmpool"
	}
}

func key(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}

// withComponent is the embedded overlay with a component, as a user would write it.
func withComponent(manifests, component string) ([]*unstructured.Unstructured, error) {
	dir, err := os.MkdirTemp(manifests, "chart-") // kustomize takes no absolute path
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is empty but for this
	text := fmt.Sprintf("resources: [../%s]\ncomponents: [../components/%s]\n", embedded, component)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return install.Render(dir)
}
