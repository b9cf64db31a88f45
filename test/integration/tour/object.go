package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
)

// read gives the objects of a manifest.
func read(path ...string) ([]*unstructured.Unstructured, error) {
	name := filepath.Join(path...)
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	objects, err := controlplane.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s holds no object", name)
	}
	return objects, nil
}

// create is kubectl create --dry-run=server: what the API server would store.
func (t *tour) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer := object.DeepCopy()
	return answer, t.admin.Create(ctx, answer, client.DryRunAll)
}

// replace is kubectl replace --dry-run=server.
func (t *tour) replace(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer := object.DeepCopy()
	return answer, t.admin.Update(ctx, answer, client.DryRunAll)
}

// tokenVolume is the volume that Kubernetes adds to a pod, under another name each time.
var tokenVolume = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)

// differing gives, as YAML, the fields of two answers of the API server that differ, with the fields around them.
func differing(before, after *unstructured.Unstructured) (beforeYAML, afterYAML string, err error) {
	var sides [2]any
	for i, object := range []*unstructured.Unstructured{before, after} {
		content, err := object.MarshalJSON()
		if err != nil {
			return "", "", err
		}
		var side map[string]any
		if err := yaml.Unmarshal(tokenVolume.ReplaceAll(content, []byte("kube-api-access")), &side); err != nil {
			return "", "", err
		}
		delete(side, "status")
		if metadata, ok := side["metadata"].(map[string]any); ok { // what the server keeps for itself
			for _, key := range []string{"uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"} {
				delete(metadata, key)
			}
		}
		sides[i] = side
	}
	sides[0], sides[1] = prune(sides[0], sides[1])
	left, err := yaml.Marshal(sides[0])
	if err != nil {
		return "", "", err
	}
	right, err := yaml.Marshal(sides[1])
	return emptied(left), emptied(right), err
}

// emptied writes a map of which prune has left nothing as its key alone, as on the side where something is left.
func emptied(content []byte) string { return strings.ReplaceAll(string(content), ": null\n", ":\n") }

// prune leaves out of two maps what is equal, at every depth; a map of which nothing is left becomes nil. Lists are kept
// whole: an entry means little without the others.
func prune(a, b any) (left, right any) {
	aMap, aOK := a.(map[string]any)
	bMap, bOK := b.(map[string]any)
	if !aOK || !bOK {
		return a, b
	}
	l, r := map[string]any{}, map[string]any{}
	for key, value := range aMap {
		other, both := bMap[key]
		switch {
		case !both:
			l[key] = value
		case !reflect.DeepEqual(value, other):
			l[key], r[key] = prune(value, other)
		}
	}
	for key, value := range bMap {
		if _, both := aMap[key]; !both {
			r[key] = value
		}
	}
	if len(l) > 0 {
		left = l
	}
	if len(r) > 0 {
		right = r
	}
	return left, right
}
