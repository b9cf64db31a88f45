package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	fieldManager  = "controlplane"
	serveLimit    = 30 * time.Second // for the API server to serve a new CRD
	tokenLifetime = 24 * time.Hour
)

// Decode reads YAML or JSON documents. Empty documents are left out; a List is
// taken apart.
func Decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML document %d: %w", n, err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			return nil, fmt.Errorf("decode YAML document %d: %w", n, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
			return nil, fmt.Errorf("decode YAML document %d: kind or apiVersion is missing", n)
		}
		if !obj.IsList() {
			objs = append(objs, obj)
			continue
		}
		list, err := obj.ToList()
		if err != nil {
			return nil, fmt.Errorf("decode the list in YAML document %d: %w", n, err)
		}
		for i := range list.Items {
			objs = append(objs, &list.Items[i])
		}
	}
}

// Apply applies the objects server-side in the order given, as the field manager
// "controlplane", and takes fields over from others. A CRD counts as applied once
// its kind is served, so that its objects may follow in the same call.
func (c *ControlPlane) Apply(ctx context.Context, objs ...*unstructured.Unstructured) error {
	for _, obj := range objs {
		applied := obj.DeepCopy() // the answer is written into it
		err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
			client.FieldOwner(fieldManager), client.ForceOwnership)
		if err == nil && obj.GroupVersionKind().GroupKind() == crdKind {
			err = c.waitServed(ctx, obj)
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", obj.GetKind(), client.ObjectKeyFromObject(obj), err)
		}
	}
	return nil
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// waitServed lists every version of the kind that crd defines: this needs the CRD
// to be established and discovery to know it, and the latter comes a little later.
func (c *ControlPlane) waitServed(ctx context.Context, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if served, _ := fields["served"].(bool); !served {
			continue
		}
		name, _ := fields["name"].(string)
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: name, Kind: kind + "List"})
		var last error
		err := wait.PollUntilContextTimeout(ctx, pollInterval, serveLimit, true, func(ctx context.Context) (bool, error) {
			last = c.client.List(ctx, list, client.Limit(1))
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait for version %s to be served: %w", name, errors.Join(err, last))
		}
	}
	return nil
}

// CreateNode creates node with its status, as a kubelet does when it registers:
// unlike a pod's, a node's status is kept at creation. With the annotation
// kwok.x-k8s.io/node=fake and KWOK running it becomes Ready on its own; without
// either, give it the conditions that the test needs.
func (c *ControlPlane) CreateNode(ctx context.Context, node *corev1.Node) error {
	if err := c.client.Create(ctx, node); err != nil {
		return fmt.Errorf("create Node %s: %w", node.Name, err)
	}
	return nil
}

// ServiceAccountKubeconfig writes a kubeconfig file for an existing ServiceAccount
// with a token that is valid for 24 hours, and returns its path below Dir.
func (c *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	seconds := int64(tokenLifetime.Seconds())
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.client.SubResource("token").Create(ctx, account, token); err != nil {
		return "", fmt.Errorf("get a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	// No namespace has a dot in its name, so no two accounts share a file.
	path := filepath.Join(c.Dir, namespace+"."+name+".kubeconfig")
	return path, writeKubeconfig(path, c.Config.Host, c.keys.ca, token.Status.Token)
}
