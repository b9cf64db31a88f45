package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	newImage     = "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.1-cpu"
	templateName = "jupyter-k8s-shared/cpu"
)

// templateImage gives a WorkspaceTemplate another image, and waits for the placeholder Deployment to have it.
func (t *tour) templateImage(ctx context.Context) error {
	t.say("The next Workspace of the template %s will start from a new image. Placeholders that hold the old one would keep"+
		" nodes warm for no one:", templateName)
	patch := fmt.Sprintf(`{"spec":{"defaultImage":%q}}`, newImage)
	t.verbatim("$ kubectl patch workspacetemplate cpu -n jupyter-k8s-shared --type=merge -p \\", "    '"+patch+"'")
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(schema.GroupVersionKind{Group: "workspace.jupyter.org", Version: "v1alpha1", Kind: "WorkspaceTemplate"})
	template.SetNamespace("jupyter-k8s-shared")
	template.SetName("cpu")
	began := time.Now()
	if err := t.admin.Patch(ctx, template, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return err
	}
	var placeholder appsv1.Deployment
	err := poll(ctx, func(ctx context.Context) error {
		key := client.ObjectKey{Namespace: placeholderNamespace, Name: "spaces-placeholder-cpu"}
		if err := t.admin.Get(ctx, key, &placeholder); err != nil {
			return err
		}
		if image := placeholder.Spec.Template.Spec.InitContainers[0].Image; image != newImage {
			return fmt.Errorf("the placeholder still pulls %s", image)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.after(began, "Deployment %s pulls it", placeholder.Name)
	return t.toldAbout(ctx, &placeholder)
}

// toldAbout shows the Event of the sync.
func (t *tour) toldAbout(ctx context.Context, placeholder *appsv1.Deployment) error {
	return poll(ctx, func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := t.admin.List(ctx, &events, client.InNamespace(placeholder.Namespace)); err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "ImageSynced" && e.Regarding.UID == placeholder.UID {
				t.point("", "Event "+e.Reason+": "+e.Note)
				return nil
			}
		}
		return fmt.Errorf("there is no Event ImageSynced")
	})
}

// templateImageRolls is templateImage where placeholders run: they roll on the nodes that they have.
func (t *tour) templateImageRolls(ctx context.Context) error {
	before, err := t.warm(ctx, "cpu")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := t.templateImage(ctx); err != nil {
		return err
	}
	var now []corev1.Pod
	err = poll(ctx, func(ctx context.Context) error {
		if now, err = t.warm(ctx, "cpu"); err != nil {
			return err
		}
		for i := range now {
			if image := now[i].Spec.InitContainers[0].Image; image != newImage {
				return fmt.Errorf("pod %s still has %s", now[i].Name, image)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.after(began, "both placeholders are replaced, one after the other:")
	nodes := map[string]bool{}
	for i := range before {
		nodes[before[i].Spec.NodeName] = true
	}
	for i := range now {
		if !nodes[now[i].Spec.NodeName] {
			return fmt.Errorf("pod %s took another node, %s", now[i].Name, now[i].Spec.NodeName)
		}
		t.point("", fmt.Sprintf("%s is Running on %s", now[i].Name, now[i].Spec.NodeName))
	}
	t.line("", "")
	t.say("They are on the nodes that they had: a rollout needs no further node.")
	return nil
}
