package cel_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/rulecases"
	"warmpool.sh/webhook/cel"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

var placeholderRules = []string{"placeholder-anti-affinity", "placeholder-do-not-disrupt", "placeholder-pull-command"}

// webhookOnly are faults that the API server does not see: a command is read by a shell's parser, and pods have
// pod-template-hash, templates have not. docs/cel.md names them.
var webhookOnly = []string{
	"placeholder-anti-affinity/deny-hash-absent.txtar", "placeholder-anti-affinity/deny-hash-value.txtar",
	"placeholder-pull-command/deny-sleeps.txtar", "placeholder-pull-command/deny-update-begins-to-sleep.txtar",
}

// judge is the label by which a policy is for the Deployments of one configuration.
const judge = "example.com/judge"

// judges are the policies so far, by the configurations that they are of.
type judges map[string]string

// The policy of placeholders denies what the engine denies by the rules that it has, but for webhookOnly, and nothing else.
func TestPlaceholders(t *testing.T) {
	byConfig := judges{}
	compared, denied, refused := 0, 0, 0
	for _, rule := range placeholderRules {
		files, err := filepath.Glob(filepath.Join(testdata, rule, "*.txtar"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(strings.TrimPrefix(file, testdata+"/"), func(t *testing.T) {
				c := readPlaceholder(t, file, rule)
				want := c.denied()
				if slices.Contains(webhookOnly, strings.TrimPrefix(file, testdata+"/")) {
					require.True(t, want, "it is not for the webhook alone any more")
					want = false
				}
				if c.object.DeletionTimestamp != nil {
					refused++ // one does not create what is being deleted
					return
				}
				unjudged := c.object.DeepCopy()
				unjudged.Name = "unjudged"
				if err := admin.Create(t.Context(), unjudged, client.DryRunAll); err != nil {
					refused++
					t.Log("no Deployment: ", err)
					return
				}
				c.object.Labels[judge] = byConfig.of(t, c.evaluator, rule+"\n"+c.configuration)
				ctx := t.Context()
				require.EventuallyWithT(t, func(collect *assert.CollectT) {
					err := c.post(ctx)
					if want {
						assert.ErrorContains(collect, err, "(rule "+rule+")")
					} else {
						assert.NoError(collect, err)
					}
				}, limit, step)
				compared++
				if want {
					denied++
				}
			})
		}
	}
	t.Logf("%d compared, of which %d denied; %d that no API server admits", compared, denied, refused)
	assert.Greater(t, compared, 40)
	assert.Greater(t, denied, 20)
	assert.LessOrEqual(t, refused, 12)
}

type placeholderCase struct {
	configuration string
	evaluator     *policy.Evaluator
	object, old   *appsv1.Deployment // old is nil at CREATE
}

func readPlaceholder(t *testing.T, file, rule string) *placeholderCase {
	t.Helper()
	read := rulecases.Read(t, file)
	read.Alone(rule)
	facts := &cluster.Snapshot{}
	if read.Own["cluster.yaml"] {
		facts = read.Facts(t)
	}
	c := &placeholderCase{configuration: read.Sections["config.yaml"], object: deployment(t, []byte(read.Sections["object.yaml"]))}
	if read.Own["old.yaml"] {
		c.old = deployment(t, []byte(read.Sections["old.yaml"]))
	}
	c.shareNamespace(t, facts)
	evaluator, err := policy.New(read.Config, facts, atNight)
	require.NoError(t, err)
	c.evaluator = evaluator
	return c
}

func deployment(t *testing.T, text []byte) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, yaml.Unmarshal(text, d))
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	// What is not judged here, and the API server asks for.
	for _, containers := range [][]corev1.Container{d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers} {
		for i := range containers {
			if containers[i].Image == "" {
				containers[i].Image = "image"
			}
		}
	}
	d.Spec.Template.Spec.PriorityClassName = ""
	d.Finalizers, d.UID, d.ResourceVersion, d.Status = nil, "", "", appsv1.DeploymentStatus{}
	if len(d.Spec.Template.Spec.Containers) == 0 {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "pause", Image: "image"}}
	}
	return d
}

// shareNamespace has the API server and the engine know the same of the namespace.
func (c *placeholderCase) shareNamespace(t *testing.T, facts *cluster.Snapshot) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.object.Namespace}}
	if known := facts.Namespaces.Get(c.object.Namespace); known != nil {
		namespace.Labels = known.Labels
	}
	if err := admin.Create(t.Context(), namespace); apierrors.IsAlreadyExists(err) {
		labels := namespace.Labels
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
		namespace.Labels = map[string]string{corev1.LabelMetadataName: namespace.Name}
		maps.Copy(namespace.Labels, labels)
		require.NoError(t, admin.Update(t.Context(), namespace))
	} else {
		require.NoError(t, err)
	}
	facts.Namespaces = cluster.Known(map[string]*corev1.Namespace{namespace.Name: namespace})
}

// denied reports whether the engine denies.
func (c *placeholderCase) denied() bool {
	if !c.evaluator.IsPlaceholder(c.object) {
		return false
	}
	o := c.evaluator.Placeholder(c.object, c.object.Namespace)
	findings := c.evaluator.Check(o)
	if c.old != nil {
		findings = c.evaluator.CheckUpdate(o.Updates(c.old), c.evaluator.Placeholder(c.old, c.object.Namespace))
	}
	return slices.ContainsFunc(findings, func(f policy.Finding) bool { return f.Action == config.Deny })
}

// post creates or updates the Deployment as a dry run.
func (c *placeholderCase) post(ctx context.Context) error {
	object := c.object.DeepCopy()
	if c.old == nil {
		object.Name = "new-" + object.Name
		return admin.Create(ctx, object, client.DryRunAll)
	}
	before := c.old.DeepCopy()
	if err := client.IgnoreNotFound(admin.Delete(ctx, before.DeepCopy())); err != nil {
		return err
	}
	if err := admin.Create(ctx, before); err != nil {
		return err
	}
	object.ResourceVersion = before.ResourceVersion
	return admin.Update(ctx, object, client.DryRunAll)
}

// of makes the policy of a configuration where there is none yet, and gives the label that has it judge.
func (j judges) of(t *testing.T, e *policy.Evaluator, configuration string) string {
	t.Helper()
	if name, ok := j[configuration]; ok {
		return name
	}
	name := "judge-" + strconv.Itoa(len(j))
	j[configuration] = name
	p, err := cel.NewPlaceholders(e, "warmpool-system")
	require.NoError(t, err)
	if p == nil {
		return name // the rule does not deny in every pool
	}
	p.Policy.Name, p.Binding.Name, p.Binding.Spec.PolicyName = name, name, name
	p.Binding.Spec.MatchResources = &admissionv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{judge: name}}}
	require.NoError(t, admin.Create(t.Context(), p.Policy))
	require.NoError(t, admin.Create(t.Context(), p.Binding))
	return name
}
