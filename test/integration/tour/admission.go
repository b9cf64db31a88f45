package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

func (t *tour) gpuWorkspace(ctx context.Context) error {
	t.say("Its pod asks for nvidia.com/gpu, and says nothing of nodes. This is what would be stored without warmpool;" +
		" the lines that warmpool adds are marked with +.")
	if err := t.placed(ctx, workspaceGPU, "spaces-gpu"); err != nil {
		return err
	}
	t.line("", "")
	t.say("It can go to the nodes of the warm pool now, in spite of their taint, and to no others.")
	return nil
}

func (t *tour) cpuWorkspace(ctx context.Context) error {
	t.say("Its user will have one zone or the other. Each of the two terms is enough by itself, so the pool goes into both.")
	return t.placed(ctx, workspaceCPU, "spaces-cpu")
}

// placed sends a Workspace pod and shows what was added; the pod must then fit the nodes of one NodePool only.
func (t *tour) placed(ctx context.Context, name, nodePool string) error {
	answer, err := t.create(ctx, t.sent[name])
	if err != nil {
		return err
	}
	before, after, err := differing(t.plain[name], answer)
	if err != nil {
		return err
	}
	t.command("create -o yaml", name)
	t.diff(before, after)
	return t.fitsOnly(answer, nodePool)
}

// fitsOnly checks that a pod's affinity selects the nodes of one NodePool and no others, and that it tolerates their taints.
func (t *tour) fitsOnly(object *unstructured.Unstructured, nodePool string) error {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		return err
	}
	for i := range t.nodes {
		node := &t.nodes[i]
		selected, err := nodeaffinity.GetRequiredNodeAffinity(&pod).Match(node)
		if err != nil {
			return err
		}
		have := node.Labels["karpenter.sh/nodepool"]
		if wanted := have == nodePool; selected != wanted {
			return fmt.Errorf("only nodes of NodePool %s should be selected; for node %s of NodePool %s it is %t", nodePool, node.Name, have, selected)
		}
		taint, repelled := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, nil, false)
		if selected && repelled {
			return fmt.Errorf("taint %s of node %s should be tolerated", taint.ToString(), node.Name)
		}
	}
	return nil
}

func (t *tour) brokenPlaceholder(ctx context.Context) error {
	t.say("Kubernetes alone takes it without a word. The comments in the file tell its faults; this is what warmpool says:")
	t.warnings.take()
	_, err := t.replace(ctx, t.sent[placeholderBroken])
	t.command("replace", placeholderBroken)
	return t.refused(err, "placeholder-anti-affinity")
}

// refused shows an error as kubectl does; it must be an Invalid that names the rule.
func (t *tour) refused(err error, rule string) error {
	if err == nil {
		return fmt.Errorf("it was admitted; rule %s should have refused it", rule)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonInvalid || status.Status().Code != http.StatusUnprocessableEntity {
		return fmt.Errorf("it should be refused as Invalid (422): %w", err)
	}
	details := status.Status().Details
	if !strings.Contains(err.Error(), "(rule "+rule+")") || details == nil {
		return fmt.Errorf("it should be refused by rule %s: %w", rule, err)
	}
	for _, text := range t.warnings.take() {
		t.point("", "Warning: "+text)
	}
	t.point("", fmt.Sprintf("The %s %q is invalid:", details.Kind, details.Name))
	for _, cause := range details.Causes {
		t.point("* ", cause.Field+": "+cause.Message)
	}
	return nil
}

func (t *tour) fixedPlaceholder(ctx context.Context) error {
	t.say("manifests/try/%s, without the fields that warmpool can fill in. It is admitted, and filled (- is what Kubernetes"+
		" sets by itself):", placeholderFixed)
	t.line("", "")
	answer, err := t.replace(ctx, t.sent[placeholderFixed])
	if err != nil {
		return fmt.Errorf("it should be admitted: %w", err)
	}
	before, after, err := differing(t.plain[placeholderFixed], answer)
	if err != nil {
		return err
	}
	t.diff(before, after)
	for _, path := range filled {
		value, found, err := unstructured.NestedFieldNoCopy(answer.Object, path...)
		if err != nil {
			return err
		}
		was, _, err := unstructured.NestedFieldNoCopy(t.plain[placeholderFixed].Object, path...)
		if err != nil {
			return err
		}
		if !found || fmt.Sprint(value) == fmt.Sprint(was) {
			return fmt.Errorf("%s should be filled in", strings.Join(path, "."))
		}
	}
	return nil
}

// filled are the fields of a placeholder that warmpool fills in.
var filled = [][]string{
	{"spec", "strategy"},
	{"spec", "template", "metadata", "annotations"},
	{"spec", "template", "spec", "affinity", "nodeAffinity"},
	{"spec", "template", "spec", "terminationGracePeriodSeconds"},
	{"spec", "template", "spec", "tolerations"},
}

func leaveOutFilled(placeholder *unstructured.Unstructured) {
	for _, path := range filled {
		unstructured.RemoveNestedField(placeholder.Object, path...)
	}
}

// command shows what the reader would type for the same.
func (t *tour) command(verb, name string) {
	t.verbatim("$ kubectl " + verb + " --dry-run=server -f manifests/try/" + name)
}
