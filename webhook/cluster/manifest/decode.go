package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	yamljson "sigs.k8s.io/yaml"
)

// item is an object of a document and the path that leads to it, such as "items[2]."; empty when it is no list's.
type item struct {
	*unstructured.Unstructured
	path string
}

// decode reads the objects of a document, as kubectl does; List kinds give their items. A document without content is
// empty. The error goes behind the place.
func decode(doc document) (items []item, empty bool, err error) {
	data := []byte(doc.text)
	if !json.Valid(data) {
		if data, err = yamljson.YAMLToJSON(data); err != nil {
			return nil, false, explain(doc, err)
		}
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "null" {
		return nil, true, nil
	}
	object, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return nil, false, explain(doc, err)
	}
	if items, err = flatten(nil, object, ""); err != nil {
		return nil, false, explain(doc, err)
	}
	return items, false, nil
}

// flatten appends the items of lists, and of lists among them.
func flatten(items []item, object runtime.Object, path string) ([]item, error) {
	switch o := object.(type) {
	case *unstructured.UnstructuredList:
		for i := range o.Items {
			var err error
			if items, err = flatten(items, &o.Items[i], fmt.Sprintf("%sitems[%d].", path, i)); err != nil {
				return nil, err
			}
		}
		return items, nil
	case *unstructured.Unstructured:
		if !o.IsList() {
			return append(items, item{o, path}), nil
		}
		list, err := o.ToList()
		if err != nil {
			return nil, fmt.Errorf("%sitems: %w", path, err)
		}
		return flatten(items, list, path)
	default:
		return nil, fmt.Errorf("not an object but %T", object)
	}
}

var errNotObject = errors.New("not a Kubernetes object; it needs apiVersion, kind and metadata")

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// explain finds out what is wrong with a document that the decoder refused: its errors name no line of the file and no
// field, and some repeat the whole object, which may hold secrets.
func explain(doc document, refused error) error {
	var parsed any
	if err := yaml.Unmarshal([]byte(doc.text), &parsed); err != nil {
		if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
			if line, err := strconv.Atoi(found[1]); err == nil {
				return fmt.Errorf(", line %d: neither YAML nor JSON: %s", doc.line+line-1, found[2])
			}
		}
		return fmt.Errorf(", from line %d: neither YAML nor JSON: %w", doc.line, err)
	}
	object, ok := parsed.(map[string]any)
	if !ok {
		return fmt.Errorf(", line %d: %w", doc.line, errNotObject)
	}
	if err := check(object); err != nil {
		return fmt.Errorf(": %w", err)
	}
	items, ok := object["items"].([]any)
	if !ok {
		return errors.New(": items: want a list of objects (- value)")
	}
	for i, item := range items {
		if _, ok := item.(map[string]any); !ok {
			return fmt.Errorf(": items[%d]: %w", i, errNotObject)
		}
	}
	return fmt.Errorf(": cannot be read as Kubernetes objects: %w", refused)
}
