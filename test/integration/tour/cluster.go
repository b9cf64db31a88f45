package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

const (
	pollInterval = 20 * time.Millisecond
	pollLimit    = time.Minute // on a busy machine
)

// setUp makes the example cluster and installs warmpool in it. What the tour will send is sent before that, to know what
// Kubernetes alone answers.
func (t *tour) setUp(ctx context.Context, cp *controlplane.ControlPlane, full bool) error {
	var err error
	if t.root, err = install.Root(); err != nil {
		return err
	}
	t.heading("Installing")
	t.say("The example cluster of manifests/examples/fine: NodePools, nodes, WorkspaceTemplates, namespaces.")
	if err := t.readNodes(); err != nil {
		return err
	}
	if err := t.exampleCluster(ctx, cp, full); err != nil {
		return err
	}
	if err := t.readTry(); err != nil {
		return err
	}
	if err := t.askPlain(ctx); err != nil {
		return err
	}
	t.say("warmpool and its placeholders, as kubectl apply -k manifests/overlays/embedded does.")
	t.say("Building warmpool, which takes a minute or two the first time.")
	if _, err := install.Up(ctx, cp, install.Options{Root: t.root, WithoutCRDs: true}); err != nil {
		return err
	}
	return nil
}

// exampleCluster applies manifests/examples/fine. The node class stays out: it is for Karpenter, which does not run here.
func (t *tour) exampleCluster(ctx context.Context, cp *controlplane.ControlPlane, full bool) error {
	objects, err := install.CRDs(t.root)
	if err != nil {
		return err
	}
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "templates.yaml"} {
		more, err := read(t.root, "manifests", "examples", "fine", name)
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	for _, object := range objects {
		if object.GetKind() == "HyperpodNodeClass" {
			continue
		}
		if err := cp.Apply(ctx, object); err != nil {
			return err
		}
	}
	if err := t.createNodes(ctx, cp, full); err != nil || !full {
		return err
	}
	return t.liveCluster(ctx, cp)
}

func (t *tour) readNodes() error {
	objects, err := read(t.root, "manifests", "examples", "fine", "nodes.yaml")
	if err != nil {
		return err
	}
	t.nodes = make([]corev1.Node, len(objects))
	for i, object := range objects {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &t.nodes[i]); err != nil {
			return fmt.Errorf("nodes.yaml, %s: %w", object.GetName(), err)
		}
	}
	return nil
}

func (t *tour) createNodes(ctx context.Context, cp *controlplane.ControlPlane, full bool) error {
	for i := range t.nodes {
		node := t.nodes[i].DeepCopy()
		if full { // KWOK gives the node its conditions
			node.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"}
			node.Status.Conditions = nil
		}
		if err := cp.CreateNode(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// liveCluster waits for what controllers make, and gives the Workspace that will run the volume that it mounts.
func (t *tour) liveCluster(ctx context.Context, cp *controlplane.ControlPlane) error {
	volume, err := read(t.root, "test", "integration", "tour", "volume.yaml")
	if err != nil {
		return err
	}
	if err := cp.Apply(ctx, volume...); err != nil {
		return err
	}
	claim := volume[1]
	return poll(ctx, func(ctx context.Context) error {
		for i := range t.nodes {
			var node corev1.Node
			if err := t.admin.Get(ctx, client.ObjectKey{Name: t.nodes[i].Name}, &node); err != nil {
				return err
			}
			if len(node.Spec.Taints) > len(t.nodes[i].Spec.Taints) {
				return fmt.Errorf("node %s is not ready", node.Name)
			}
		}
		var bound corev1.PersistentVolumeClaim
		if err := t.admin.Get(ctx, client.ObjectKeyFromObject(claim), &bound); err != nil {
			return err
		}
		if bound.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("PersistentVolumeClaim %s is not bound", bound.Name)
		}
		// Without it pods are refused.
		return t.admin.Get(ctx, client.ObjectKey{Namespace: claim.GetNamespace(), Name: "default"}, &corev1.ServiceAccount{})
	})
}

func (t *tour) readTry() error {
	t.sent = map[string]*unstructured.Unstructured{}
	for _, name := range []string{workspaceGPU, workspaceCPU, placeholderBroken, placeholderFixed} {
		objects, err := read(t.root, "manifests", "try", name)
		if err != nil {
			return err
		}
		t.sent[name] = objects[0]
	}
	leaveOutFilled(t.sent[placeholderFixed])
	return nil
}

func (t *tour) askPlain(ctx context.Context) error {
	t.plain = map[string]*unstructured.Unstructured{}
	for name, object := range t.sent {
		answer, err := t.create(ctx, object)
		if err != nil {
			return fmt.Errorf("manifests/try/%s, which an API server without warmpool takes: %w", name, err)
		}
		t.plain[name] = answer
	}
	return nil
}

// poll asks until there is no error; else the last error says what was missing.
func poll(ctx context.Context, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, pollLimit, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited in vain: %w: %w", err, last)
	}
	return nil
}
