package manifest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/cluster/manifest"
)

func load(t *testing.T, text string, options manifest.Options) *manifest.Reading {
	t.Helper()
	return manifest.Load([]string{"-"}, strings.NewReader(text), options)
}

func TestNamespacesAreThoseOfAnAPIServer(t *testing.T) {
	reading := load(t, `
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: cpu, namespace: karpenter}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low, namespace: x}, value: -1}
---
{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: c, namespace: karpenter}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, metadata: {name: p, namespace: x}, value: 1}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, namespace: other}}
---
{apiVersion: example.com/v1, kind: Fleet, metadata: {name: f, namespace: x}}
---
{apiVersion: example.com/v1, kind: Ship, metadata: {name: s}}
---
{apiVersion: example.com/v1, kind: Crew, metadata: {name: unknown, namespace: z}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: f}, spec: {group: example.com, scope: Cluster, names: {kind: Fleet}}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: s}, spec: {group: example.com, scope: Namespaced, names: {kind: Ship}}}
`, manifest.Options{Namespace: "team"})
	require.NoError(t, reading.Err())
	assert.NotNil(t, reading.Snapshot.NodePools.Get("cpu"))
	assert.NotNil(t, reading.Snapshot.PriorityClasses.Get("low"))
	assert.NotNil(t, reading.Snapshot.WorkloadPriorityClasses.Get("p"))
	assert.NotNil(t, reading.Snapshot.ConfigMaps.Get("team/cm"))
	assert.NotNil(t, reading.Snapshot.ConfigMaps.Get("other/cm"))
	namespaces := map[string]string{}
	for _, o := range reading.Objects {
		namespaces[o.GetKind()] = o.GetNamespace()
	}
	assert.Empty(t, namespaces["EC2NodeClass"])
	assert.Empty(t, namespaces["Fleet"])
	assert.Equal(t, "team", namespaces["Ship"])
	assert.Equal(t, "z", namespaces["Crew"], "no one says what it is")
	assert.Empty(t, reading.Notes, "the namespace was given")
}

func TestTwoDefinitionsAreNoFact(t *testing.T) {
	const pool = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: cpu}, spec: {limits: {cpu: %}}}"
	one, two := strings.Replace(pool, "%", "1", 1), strings.Replace(pool, "%", "2", 1)
	same := load(t, one+"\n---\n"+one, manifest.Options{})
	require.NoError(t, same.Err())
	assert.NotNil(t, same.Snapshot.NodePools.Get("cpu"))
	assert.Empty(t, same.Notes)

	differ := load(t, one+"\n---\n"+two+"\n---\n"+one, manifest.Options{})
	require.NoError(t, differ.Err())
	pools := differ.Snapshot.NodePools
	assert.Nil(t, pools.Get("cpu"))
	assert.Contains(t, pools.Malformed("cpu"), "defined in standard input, document 1 and otherwise in standard input, document 2")
	assert.Len(t, pools.Variants("cpu"), 2)
	numbers := 0
	for number := range pools.Defined() {
		numbers += number
	}
	assert.Equal(t, 3, numbers)
	require.Len(t, differ.Notes, 1)
	assert.Contains(t, differ.Notes[0], "NodePool cpu")

	strict := load(t, one+"\n---\n"+one, manifest.Options{Strict: true})
	assert.ErrorContains(t, strict.Err(), "the same object is in")
}

// Whatever is no object is passed over, and whatever is meant as one that rules go by is not.
func TestWhatIsPassedOver(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		broken bool
		note   string
	}{
		"values":                   {text: "replicas: 1\nimage: {tag: x}\n", note: "no Kubernetes objects"},
		"values with templates":    {text: "url: '{{ .Values.host }}'\n", note: "no Kubernetes objects"},
		"workflow":                 {text: "on: [push]\njobs: {a: {run: '${{ x }}'}}\n", note: "no Kubernetes objects"},
		"list":                     {text: "- a\n- b\n", note: "no Kubernetes objects"},
		"scalar":                   {text: "text\n", note: "no Kubernetes objects"},
		"comments":                 {text: "# a\n---\n# b\n", note: "nothing but comments"},
		"kustomization":            {text: "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a]\n", note: "kustomizations"},
		"component":                {text: "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n", note: "kustomizations"},
		"template":                 {text: "{{- if .Values.a }}\nkind: Pod\n{{- end }}\n", note: "unrendered templates"},
		"template of a value":      {text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: {{ .Values.n }}\n", note: "unrendered templates"},
		"template in quotes":       {text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: '{{ .Values.n }}'}\n", note: "unrendered templates"},
		"template of the name":     {text: "apiVersion: v1\nkind: Pod\nmetadata: {name: '{{ .Release.Name }}-a'}\n", note: "unrendered templates"},
		"variable":                 {text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: ${N}\n", note: "unrendered templates"},
		"no YAML":                  {text: "a: [\n", note: "neither YAML nor JSON"},
		"removed kind":             {text: "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}\n", note: "of kinds that no rule goes by"},
		"kubeconfig":               {text: "apiVersion: v1\nkind: Config\nclusters: []\n", note: "of kinds that no rule goes by"},
		"wrong field":              {text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: many}\n", broken: true},
		"misspelled kind":          {text: "apiVersion: apps/v1\nkind: Deploymnt\nmetadata: {name: a}\n", broken: true},
		"no apiVersion":            {text: "kind: Deployment\nmetadata: {name: a}\n", broken: true},
		"broken YAML of an object": {text: "apiVersion: v1\nkind: Pod\nmetadata: {name: [\n", broken: true},
		"item of a list":           {text: "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: {}}}]\n", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "a.yaml"), c.text)
			reading := manifest.Load([]string{folder}, nil, manifest.Options{})
			assert.Empty(t, reading.Refused)
			assert.Equal(t, c.broken, len(reading.Broken) > 0, "%v", reading.Broken)
			notes := strings.Join(reading.Notes, "\n")
			if c.broken {
				assert.NotContains(t, notes, "passed over")
			} else {
				assert.Contains(t, notes, "passed over 1 file ("+c.note)
				assert.Contains(t, notes, "a.yaml")
				strict := manifest.Load([]string{folder}, nil, manifest.Options{Strict: true})
				assert.Error(t, strict.Err())
			}
			assert.NotContains(t, notes, "map[")
		})
	}
}

func TestIgnore(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.yaml", "values.yaml", "charts/x/templates/d.yaml", "charts/x/d.yaml", "deep/testdata/b.yaml"} {
		write(t, filepath.Join(folder, name), strings.Replace(pod, "w1", strings.NewReplacer("/", "-", ".", "-").Replace(name), 1))
	}
	for _, c := range []struct {
		ignore []string
		left   int
	}{
		{nil, 5}, {[]string{"values*.yaml"}, 4}, {[]string{"testdata"}, 4}, {[]string{"**/testdata"}, 4}, {[]string{"charts/*/templates"}, 4},
		{[]string{"charts/"}, 3}, {[]string{"x"}, 3}, {[]string{"charts/*"}, 3}, {[]string{"d.yaml", "a.yaml"}, 2},
	} {
		reading := manifest.Load([]string{folder}, nil, manifest.Options{Ignore: c.ignore})
		require.NoError(t, reading.Err())
		assert.Len(t, reading.Objects, c.left, "%v", c.ignore)
	}
	assert.Error(t, manifest.Load([]string{folder}, nil, manifest.Options{Ignore: []string{"["}}).Err())
}
