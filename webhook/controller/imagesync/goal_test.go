package imagesync

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

func ref(name string) config.TemplateRef { return config.TemplateRef{Namespace: "shared", Name: name} }

func TestGoalNamesTheTemplatesThatWereEdited(t *testing.T) {
	r := newRig(t)
	r.edit("b", "r/b:1")
	r.pass(patience)
	goalWith := func(a, b string) goal {
		r.templates["shared/a"] = &cluster.WorkspaceTemplate{Namespace: "shared", Name: "a", DefaultImage: a}
		r.templates["shared/b"] = &cluster.WorkspaceTemplate{Namespace: "shared", Name: "b", DefaultImage: b}
		return goalOf(r.evaluator(), r.server)
	}
	for _, c := range []struct {
		a, b   string
		edited []config.TemplateRef
	}{
		{"r/a:1", "r/b:1", nil},
		{"r/a:1", "r/b:2", []config.TemplateRef{ref("b")}},
		{"r/b:1", "r/b:1", []config.TemplateRef{ref("a")}},
		{"r/b:1", "r/a:1", []config.TemplateRef{ref("a"), ref("b")}},
		{"bare", "r/b:1", nil},
	} {
		assert.Equal(t, c.edited, goalWith(c.a, c.b).edited(), "%s %s", c.a, c.b)
	}
	g := goalWith("r/a:1", "r/b:1")
	assert.Equal(t, []config.TemplateRef{ref("a"), ref("b")}, g.templates())
	assert.Equal(t, []config.TemplateRef{ref("b")}, g.templatesOf("r/b:1"))
	r.server.Spec.Template.Spec.InitContainers[1].Image = "r/other"
	assert.Equal(t, []config.TemplateRef{ref("a")}, goalOf(r.evaluator(), r.server).edited(), "a revert")
}

// A placeholder that two pools claim is left alone, and the templates of both hear of it.
func TestGoalOfSeveralPools(t *testing.T) {
	r := newRig(t)
	cfg, err := config.Load([]byte(twoTemplates+"- {name: cpu-2, nodePools: [cpu-b], templates: [{namespace: shared, name: c}]}\n"), nil)
	require.NoError(t, err)
	r.config = cfg
	d := r.server.DeepCopy()
	d.Labels = map[string]string{"app": "spaces-overprovisioning"}
	s := decide(goalOf(r.evaluator(), d), nil, newMemory(d), r.now)
	assert.Equal(t, writeNothing, s.write)
	assert.False(t, s.goal.known)
	require.Len(t, s.problems, 1)
	assert.Equal(t, []config.TemplateRef{ref("a"), ref("b"), ref("c")}, s.problems[0].templates)
	assert.Contains(t, s.problems[0].note, "image sync leaves Deployment overprovisioning/ph alone: ")
}

func TestManyImagesAreCounted(t *testing.T) {
	var images []string
	for i := range 50 {
		images = append(images, fmt.Sprintf("registry.example/%s:%d", strings.Repeat("x", 30), i))
	}
	assert.Contains(t, list(images), "(50 images)")
}

func TestOwnersOfImages(t *testing.T) {
	assert.True(t, ownsAnImage(fields(prepull.Name).GetRawBytes()))
	assert.True(t, ownsAnImage(fields(prepull.Name+"-2").GetRawBytes()))
	assert.False(t, ownsAnImage(fields("mine").GetRawBytes()))
	assert.False(t, ownsAnImage([]byte(`{"f:spec":`)))
}
