package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

// admission is the answer for one object, as admit -o json prints it.
type admission struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Operation string          `json:"operation"`
	Pool      string          `json:"pool"`
	Allowed   bool            `json:"allowed"`
	Patch     placement.Patch `json:"patch"`
	Object    json.RawMessage `json:"object"`
	Findings  []findingRow    `json:"findings"`

	warnings []string
	denial   *metav1.Status
}

// findingRow is a finding as commands print it in JSON.
type findingRow struct {
	Rule    string `json:"rule"`
	Action  string `json:"action"`
	Field   string `json:"field"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

type admitOptions struct {
	surroundings
	files   []string
	oldFile string
	output  string
}

func newAdmitCommand() *cobra.Command {
	o := &admitOptions{}
	cmd := &cobra.Command{
		Use:   "admit -f FILE",
		Short: "Show what serve would do with objects: patch, warnings, denials",
		Long: `Admit reads Pods and Deployments, does with them what the webhooks of "warmpool serve" would do, and prints the
result. Nothing is changed anywhere. Objects that the webhooks never see pass unchanged.

The facts of the cluster come from a folder of manifests (--cluster) or from a live cluster (--kubeconfig, --context).
With neither, --config is needed, and rules that need facts say "not verified".

Exit codes: 0, all objects are admitted; 1, some object is denied; 2, bad usage or input.`,
		Example: `  # What becomes of a Workspace pod in the example cluster
  warmpool admit -f pod.yaml --cluster manifests/examples/fine

  # The patch alone
  warmpool admit -f pod.yaml --cluster manifests/examples/fine -o patch

  # A kustomization, against the live cluster
  kubectl kustomize . | warmpool admit -f - --context prod

  # An update
  warmpool admit -f new.yaml --old old.yaml --cluster manifests/examples/fine`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "File, folder or - (standard input) with the objects; may be repeated")
	flags.StringVar(&o.oldFile, "old", "", "File with the objects as they were: makes the request an UPDATE")
	flags.StringVar(&o.configFile, "config", "", "File with the WarmPoolConfiguration (default: the one that the cluster holds)")
	flags.StringVar(&o.clusterDir, "cluster", "", "Folder or file of manifests that stands for the cluster")
	o.manifests.add(flags, "Namespace of objects in files that name none (default: default)")
	flags.StringVarP(&o.output, "output", "o", "yaml", "Output format: yaml (the objects as admitted), patch (one JSON patch a line) or json")
	o.kube.add(flags)
	return cmd
}

func (o *admitOptions) run(cmd *cobra.Command) error {
	if len(o.files) == 0 {
		return errors.New("no objects: give -f FILE")
	}
	printers := map[string]func(io.Writer, []*admission) error{"yaml": printObjects, "patch": printPatches, "json": printAdmissions}
	printAll := printers[o.output]
	if printAll == nil {
		return fmt.Errorf("--output must be yaml, patch or json, not %q", o.output)
	}
	cfg, facts, err := o.read(cmd)
	if err != nil {
		return err
	}
	warnExpired(cfg, cmd)
	evaluator, err := policy.New(cfg, facts, time.Now())
	if err != nil {
		return err
	}
	admissions, err := o.admitAll(evaluator, cmd.InOrStdin())
	if err != nil {
		return err
	}
	denied := 0
	for _, a := range admissions {
		for _, warning := range a.warnings {
			cmd.PrintErrf("Warning: %s %s/%s: %s\n", a.Kind, a.Namespace, a.Name, warning)
		}
		if a.denial != nil {
			denied++
			cmd.PrintErrf("Denied: %s %s/%s:\n", a.Kind, a.Namespace, a.Name)
			for _, cause := range a.denial.Details.Causes {
				cmd.PrintErrf("* %s: %s\n", cause.Field, cause.Message)
			}
		}
	}
	if err := printAll(cmd.OutOrStdout(), admissions); err != nil {
		return err
	}
	if denied > 0 {
		return &exitError{fmt.Errorf("%d of %d objects denied", denied, len(admissions)), exitFindings}
	}
	return nil
}

func (o *admitOptions) admitAll(e *policy.Evaluator, stdin io.Reader) ([]*admission, error) {
	objects, err := manifest.ObjectsIn(o.manifests.namespace, o.files, stdin)
	if err != nil {
		return nil, err
	}
	old := map[string]manifest.Object{}
	if o.oldFile != "" {
		before, err := manifest.ObjectsIn(o.manifests.namespace, []string{o.oldFile}, stdin)
		if err != nil {
			return nil, fmt.Errorf("read --old: %w", err)
		}
		for _, object := range before {
			old[identity(object)] = object
		}
	}
	admissions := make([]*admission, 0, len(objects))
	for _, object := range objects {
		before, isUpdate := old[identity(object)]
		if o.oldFile != "" && !isUpdate {
			return nil, fmt.Errorf("%s is not in --old %s: an update needs the object as it was", object, o.oldFile)
		}
		a, err := admit(e, object, before)
		if err != nil {
			return nil, err
		}
		admissions = append(admissions, a)
	}
	return admissions, nil
}

func identity(o manifest.Object) string {
	return o.GroupVersionKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
}

// admit answers for one object; old has no content at CREATE.
func admit(e *policy.Evaluator, object, old manifest.Object) (*admission, error) {
	a := &admission{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: nameOf(object),
		Operation: "CREATE", Allowed: true, Patch: placement.Patch{}, Findings: []findingRow{},
	}
	if old.Unstructured != nil {
		a.Operation = "UPDATE"
	}
	verdict, err := judge(e, object, old)
	if err != nil {
		return nil, err
	}
	if verdict == nil {
		verdict = &webhook.Verdict{}
	}
	a.Pool, a.Allowed = verdict.Pool, !verdict.Denied()
	a.Patch = append(a.Patch, verdict.Patch...)
	a.warnings = webhook.Warnings(verdict.Findings)
	a.denial = webhook.Denial(object.GroupVersionKind().GroupKind(), a.Name, verdict.Findings)
	for _, f := range verdict.Findings {
		a.Findings = append(a.Findings, findingRow{Rule: f.Rule.ID, Action: string(f.Action), Field: f.Error.Field, Message: f.Error.ErrorBody(), Fix: f.Fix})
	}
	if a.Object, err = apply(object, a.Patch); err != nil {
		return nil, fmt.Errorf("%s: %w", object, err)
	}
	return a, nil
}

// judge asks the webhook that would get the object; nil when none would.
func judge(e *policy.Evaluator, object, old manifest.Object) (*webhook.Verdict, error) {
	namespace := object.GetNamespace()
	if webhook.Excludes(namespace) {
		return nil, nil
	}
	switch object.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		pod, err := manifest.Typed[corev1.Pod](object)
		if err != nil || old.Unstructured != nil || !e.IsWorkspace(pod.Labels) {
			return nil, err
		}
		verdict := webhook.JudgePod(e, pod, namespace)
		return &verdict, nil
	case appsv1.SchemeGroupVersion.WithKind("Deployment"):
		d, err := manifest.Typed[appsv1.Deployment](object)
		if err != nil {
			return nil, err
		}
		var before *appsv1.Deployment
		if old.Unstructured != nil {
			if before, err = manifest.Typed[appsv1.Deployment](old); err != nil {
				return nil, err
			}
		}
		if !e.IsPlaceholder(d) && (before == nil || !e.IsPlaceholder(before)) {
			return nil, nil
		}
		verdict := webhook.JudgePlaceholder(e, d, before, namespace)
		return &verdict, nil
	}
	return nil, nil
}

func nameOf(o manifest.Object) string {
	if o.GetName() == "" {
		return o.GetGenerateName()
	}
	return o.GetName()
}

// apply gives the object's JSON with the patch applied, so that fields which warmpool does not know stay.
func apply(object manifest.Object, patch placement.Patch) (json.RawMessage, error) {
	document, err := object.MarshalJSON()
	if err != nil || len(patch) == 0 {
		return document, err
	}
	operations, err := patch.JSON()
	if err != nil {
		return nil, err
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(document)
}

// printObjects prints the admitted objects as YAML documents.
func printObjects(out io.Writer, admissions []*admission) error {
	separator := ""
	for _, a := range admissions {
		if !a.Allowed {
			continue
		}
		document, err := yaml.JSONToYAML(a.Object)
		if err != nil {
			return err
		}
		if !isHarmless(document) {
			document = append(bytes.TrimSpace(a.Object), '\n') // JSON is YAML too, and what is quoted in it stays the same
		}
		if _, err := fmt.Fprintf(out, "%s%s", separator, document); err != nil {
			return err
		}
		separator = "---\n"
	}
	return nil
}

func printPatches(out io.Writer, admissions []*admission) error {
	for _, a := range admissions {
		line, err := a.Patch.JSON()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func printAdmissions(out io.Writer, admissions []*admission) error { return printJSON(out, admissions) }
