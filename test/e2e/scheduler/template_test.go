package scheduler_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/sizing"
)

// template is one line of testdata/templates.yaml.
type template struct {
	Name      string              `json:"name"`
	Kind      string              `json:"kind"` // kind of node
	Namespace string              `json:"namespace"`
	Resource  corev1.ResourceName `json:"resource"`
	Rest      resource.Quantity   `json:"rest"`
	Copies    int                 `json:"copies"` // of the last container
	Never     bool                `json:"never"`  // it does not fit whatever Q is
	Spec      json.RawMessage     `json:"spec"`
}

func (c *testCluster) templatesOn(kind string) []template {
	return slices.DeleteFunc(slices.Clone(c.templates), func(tmpl template) bool { return tmpl.Kind != kind })
}

// plainTemplates ask for one resource each, of all that the shape offers.
func plainTemplates(shape *sizing.Shape) []template {
	var all []template
	for _, name := range slices.Sorted(maps.Keys(shape.Offers)) {
		amounts := fmt.Sprintf("%q: \"Q\"", name)
		switch {
		case name == corev1.ResourcePods:
			continue // one template cannot ask for more than one pod
		case strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			amounts += `, "cpu": "10m"` // the API server demands it
		}
		spec := fmt.Sprintf(`{"containers": [{"name": "a", "resources": {"limits": {%s}}}]}`, amounts)
		all = append(all, template{Name: "plain " + string(name), Resource: name, Spec: json.RawMessage(spec)})
	}
	return all
}

// pod is the template with the quantity in its place.
func (tmpl *template) pod(t *testing.T, node string, quantity resource.Quantity) *corev1.Pod {
	t.Helper()
	var spec corev1.PodSpec
	text := strings.ReplaceAll(string(tmpl.Spec), `"Q"`, `"`+quantity.String()+`"`)
	require.NotEqual(t, string(tmpl.Spec), text, "Q is in the template")
	require.NoError(t, json.Unmarshal([]byte(text), &spec))
	last := spec.Containers[len(spec.Containers)-1]
	for i := range tmpl.Copies {
		another := *last.DeepCopy()
		another.Name = fmt.Sprintf("%s%d", last.Name, i)
		spec.Containers = append(spec.Containers, another)
	}
	namespace := tmpl.Namespace
	if namespace == "" {
		namespace = "default"
	}
	return podOf(namespace, spec, map[string]string{corev1.LabelHostname: node})
}

func podOf(namespace string, spec corev1.PodSpec, selector map[string]string) *corev1.Pod {
	spec.NodeSelector = selector
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	fillImages(&spec)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pod-"}, Spec: spec}
}

// compare has sizing and the scheduler judge the template at, above and below what is available.
func (c *testCluster) compare(t *testing.T, book *ledger, kind nodeKind, node string, tmpl template) {
	shape := c.shapes[kind.Name]
	available := shape.Offers[tmpl.Resource].Available
	require.Positive(t, available.Sign())
	room := shape.Offers[corev1.ResourcePods].Available
	never := tmpl.Never || room.Sign() <= 0
	for _, at := range targets(available, tmpl.Rest, tmpl.Resource) {
		knob := minus(at.effective, tmpl.Rest)
		pod := tmpl.pod(t, node, knob)
		request := sizing.Request(&pod.Spec, pod.Namespace, c.facts)
		asked := request[tmpl.Resource]
		assert.Zero(t, asked.Cmp(at.effective), "%s: sizing counts %s %s, by hand it is %s", at.name, asked.String(), tmpl.Resource, at.effective.String())
		short := resourcesOf(shape.Shortfalls(request))
		assert.Empty(t, shape.Unknown(request))

		got := c.decide(t, pod)
		assert.True(t, equality.Semantic.DeepEqual(request, sizing.Request(&pod.Spec, pod.Namespace, c.facts)), "%s: the same for the template as for its pod", at.name)
		agree := assert.Equal(t, short, got.insufficient, "%s: sizing and scheduler: %s", at.name, got.message)
		agree = assert.Equal(t, len(short) == 0, got.node != "", "%s: sizing and scheduler: %s", at.name, got.message) && agree
		assert.Equal(t, at.fits && !never, got.node != "", "%s: what the arithmetic by hand says", at.name)
		if got.node != "" {
			assert.Equal(t, node, got.node)
		}
		book.add(line{node: node, template: tmpl.Name, resource: tmpl.Resource, available: available, target: at, sizing: short, scheduler: got, agree: agree})
	}
}

// target is an effective request and whether it should fit.
type target struct {
	name      string
	effective resource.Quantity
	fits      bool
}

func targets(available, rest resource.Quantity, name corev1.ResourceName) []target {
	unit, knob := unitOf(name), minus(available, rest)
	tenth := resource.NewQuantity(knob.Value()/10/unit.Value()*unit.Value(), unit.Format)
	if name == corev1.ResourceCPU {
		tenth = resource.NewMilliQuantity(knob.MilliValue()/10, unit.Format)
	}
	if tenth.Cmp(unit) < 0 {
		tenth = &unit
	}
	return []target{
		{"at", available, true},
		{"above", plus(available, unit), false},
		{"below", minus(available, *tenth), true},
	}
}

// unitOf is the least that a request of the resource can be larger by.
func unitOf(name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourceCPU {
		return resource.MustParse("1m")
	}
	if page, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); ok {
		return resource.MustParse(page)
	}
	return resource.MustParse("1")
}

func plus(a, b resource.Quantity) resource.Quantity {
	sum := a.DeepCopy()
	sum.Add(b)
	return sum
}

func minus(a, b resource.Quantity) resource.Quantity {
	difference := a.DeepCopy()
	difference.Sub(b)
	return difference
}
