package prepull_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestResolve(t *testing.T) {
	aliases := map[string]string{"uv": "other.example/jupyter-uv:2", "short": "nb:3", "team/nb": "other.example/nb:4", "bad": "A B"}
	const none = "none" // is set, and empty
	tests := []struct {
		name, image, registry string
		want, problem         string
		byController          bool
	}{
		{name: "complete", image: "reg.example/nb:1", registry: "r.example", want: "reg.example/nb:1"},
		{name: "complete, without a registry", image: "reg.example/nb:1", want: "reg.example/nb:1"},
		{name: "complete, no tag: as it is", image: "reg.example/nb", registry: "r.example", want: "reg.example/nb"},
		{name: "digest", image: "reg.example/x/nb@" + digest, want: "reg.example/x/nb@" + digest},
		{name: "tag and digest", image: "reg.example/x/nb:1@" + digest, want: "reg.example/x/nb:1@" + digest},
		{name: "port, without a registry", image: "host:5000/nb", want: "host:5000/nb"},
		{name: "port, registry said to be none", image: "host:5000/nb", registry: none, want: "host:5000/nb"},
		{name: "port", image: "host:5000/nb", registry: "r.example", problem: `becomes "r.example/host:5000/nb" in the Workspace controller, which is no image reference: it takes a registry with a port`, byController: true},
		{name: "port behind a slash", image: "nb/x:5000", registry: "r.example", want: "nb/x:5000"},
		{name: "bare, registry said to be none", image: "nb:1", registry: none, want: "nb:1"},
		{name: "bare, no tag, registry said to be none", image: "nb", registry: none, want: "nb"},
		{name: "alias of a bare name, registry said to be none", image: "short", registry: none, want: "nb:3"},
		{name: "bare, empty tag", image: "nb:", registry: "r.example", problem: "is no image reference: "},
		{name: "port and tag", image: "host:5000/nb:1", want: "host:5000/nb:1"},
		{name: "Docker Hub, said by its slash", image: "jupyter/nb", registry: "r.example", want: "jupyter/nb"},
		{name: "host in upper case", image: "Reg.Example/nb:1", want: "Reg.Example/nb:1"},

		{name: "bare", image: "nb:1", registry: "r.example/x", want: "r.example/x/nb:1"},
		{name: "bare, registry with a slash at its end", image: "nb:1", registry: "r.example/x/", problem: `becomes "r.example/x//nb:1" in the Workspace controller, which is no image reference: correct its --application-images-registry`, byController: true},
		{name: "bare, registry with a port", image: "nb", registry: "r.example:5000", want: "r.example:5000/nb:latest"},
		{name: "bare, no tag", image: "nb", registry: "r.example", want: "r.example/nb:latest"},
		{name: "bare, digest", image: "nb@" + digest, registry: "r.example", want: "r.example/nb@" + digest},
		{name: "bare, tag and digest", image: "nb:1@" + digest, registry: "r.example", want: "r.example/nb:1@" + digest},
		{name: "bare, without a registry", image: "nb:1", problem: "is a bare name: set workspaces.imageRegistry or imageAliases"},
		{name: "bare, in upper case", image: "NB:1", registry: "r.example", problem: "is no image reference: "},
		{name: "bare, registry that is none", image: "nb:1", registry: "http://r.example", problem: `becomes "http://r.example/nb:1" in the Workspace controller`, byController: true},

		{name: "alias", image: "uv", registry: "r.example", want: "other.example/jupyter-uv:2"},
		{name: "alias, without a registry", image: "uv", want: "other.example/jupyter-uv:2"},
		{name: "alias of a bare name", image: "short", registry: "r.example", want: "r.example/nb:3"},
		{name: "alias of a bare name, without a registry", image: "short", problem: "is a bare name: "},
		{name: "alias of a name with a slash", image: "team/nb", want: "other.example/nb:4"},
		{name: "alias of no image", image: "bad", registry: "r.example", problem: "is no image reference: "},
		{name: "a tag makes it another name", image: "uv:1", registry: "r.example", want: "r.example/uv:1"},

		{name: "empty", image: "", registry: "r.example", problem: "is empty: "},
		{name: "spaces", image: " reg.example/nb:1", problem: "is no image reference: "},
		{name: "comma", image: "reg.example/nb:1,reg.example/nb:2", problem: "is no image reference: "},
		{name: "tag alone", image: ":1", registry: "r.example", problem: "is no image reference: "},
		{name: "digest cut short", image: "reg.example/nb@sha256:0123", problem: "is no image reference: "},
		{name: "a scheme", image: "docker://reg.example/nb:1", problem: "is no image reference: "},
		{name: "not UTF-8", image: "\xff/\x00", problem: "is no image reference: "},
		{name: "huge", image: strings.Repeat("a/", 100_000), problem: "is no image reference: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			workspaces := &config.Workspaces{ImageAliases: aliases}
			switch test.registry {
			case "": // not set
			case none:
				workspaces.ImageRegistry = new("")
			default:
				workspaces.ImageRegistry = &test.registry
			}
			got := prepull.Resolve(test.image, workspaces)
			assert.Equal(t, test.want, got.Image)
			assert.Equal(t, test.byController, got.ByController)
			if test.problem == "" {
				assert.Empty(t, got.Problem)
			} else {
				assert.True(t, strings.HasPrefix(got.Problem, test.problem), got.Problem)
				assert.Less(t, len(got.Problem), 300)
			}
		})
	}
}

func templates() cluster.Facts[cluster.WorkspaceTemplate] {
	template := func(image string, allowed ...string) *cluster.WorkspaceTemplate {
		return &cluster.WorkspaceTemplate{DefaultImage: image, AllowedImages: allowed}
	}
	return cluster.Known(map[string]*cluster.WorkspaceTemplate{
		"shared/one":   template("r/nb:1", "r/nb:1", "", "r/nb:2"),
		"shared/two":   template("r/nb:1"),
		"shared/bare":  template("nb", "r/x:1"),
		"shared/empty": template(""),
		"team/one":     template("r/team:1"),
	}).WithMalformed(map[string]string{"shared/broken": "spec.defaultImage: must be a string"})
}

func refs(keys ...string) []config.TemplateRef {
	var all []config.TemplateRef
	for _, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		all = append(all, config.TemplateRef{Namespace: namespace, Name: name})
	}
	return all
}

func TestSources(t *testing.T) {
	tests := []struct {
		name      string
		prePull   config.PrePull
		templates []config.TemplateRef
		want      []string
	}{
		{name: "no templates"},
		{name: "in the order of the configuration", templates: refs("team/one", "shared/two", "shared/one"), want: []string{"r/team:1", "r/nb:1", "r/nb:1"}},
		{name: "allowed images are left out by default", prePull: config.PrePullDefault, templates: refs("shared/one"), want: []string{"r/nb:1"}},
		{
			name: "allowed images after the default one", prePull: config.PrePullAllowed, templates: refs("shared/one", "team/one"),
			want: []string{"r/nb:1", "r/nb:1", `allowedImages[1] "" of WorkspaceTemplate shared/one is empty: name an image, for warmpool cannot know the Workspace controller's own`, "r/nb:2", "r/team:1"},
		},
		{
			name: "one that does not exist stands once", prePull: config.PrePullAllowed, templates: refs("shared/gone", "shared/two"),
			want: []string{"WorkspaceTemplate shared/gone does not exist", "r/nb:1"},
		},
		{
			name: "one that cannot be read", templates: refs("shared/broken"),
			want: []string{"WorkspaceTemplate shared/broken cannot be read: spec.defaultImage: must be a string"},
		},
		{
			name: "a bare name", prePull: config.PrePullAllowed, templates: refs("shared/bare"),
			want: []string{`defaultImage "nb" of WorkspaceTemplate shared/bare is a bare name: set workspaces.imageRegistry or imageAliases`, "r/x:1"},
		},
		{
			name: "no image", templates: refs("shared/empty"),
			want: []string{`defaultImage "" of WorkspaceTemplate shared/empty is empty: name an image, for warmpool cannot know the Workspace controller's own`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, s := range prepull.Sources(&config.Pool{Templates: test.templates, PrePull: test.prePull}, &config.Workspaces{}, templates()) {
				assert.Contains(t, test.templates, s.Template)
				assert.True(t, (s.Image == "") != (s.Problem == ""), "either an image or a problem: %v", s)
				got = append(got, s.Image+s.Problem)
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// sources writes Sources down as "template image" each; without an image it is not known.
func sources(lines ...string) []prepull.Source {
	var all []prepull.Source
	for _, line := range lines {
		template, image, _ := strings.Cut(line, " ")
		s := prepull.Source{Template: config.TemplateRef{Namespace: "shared", Name: template}, Image: image}
		all = append(all, s)
	}
	return all
}

func TestImages(t *testing.T) {
	tests := []struct {
		name    string
		sources []prepull.Source
		record  prepull.Record
		now     []string
		want    []string
	}{
		{name: "nothing", want: []string{}},
		{name: "each once, in the order of the sources", sources: sources("a nb:2", "b nb:1", "c nb:2"), now: []string{"nb:1"}, want: []string{"nb:2", "nb:1"}},
		{name: "what is pulled now does not count where all is known", sources: sources("a nb:2"), record: sources("a nb:1"), now: []string{"nb:1", "old:1"}, want: []string{"nb:2"}},
		{name: "a deleted template keeps what it had", sources: sources("a nb:2", "b"), record: sources("a nb:1", "b x:1"), now: []string{"nb:1", "x:1"}, want: []string{"nb:2", "x:1"}},
		{name: "even where the placeholder does not pull it", sources: sources("a nb:2", "b"), record: sources("a nb:1", "b x:1"), now: []string{"y:1"}, want: []string{"nb:2", "x:1"}},
		{name: "with all its allowed images", sources: sources("a", "b x:1"), record: sources("a nb:1", "a nb:2", "b x:1"), want: []string{"nb:1", "nb:2", "x:1"}},
		{name: "an allowed image that is not known keeps its own last one only", sources: sources("a nb:2", "a", "a z:1"), record: sources("a nb:1", "a y:1", "a z:1"), want: []string{"nb:2", "y:1", "z:1"}},
		{name: "a default image that is not known, likewise", sources: sources("a", "a y:2"), record: sources("a nb:1", "a y:1"), want: []string{"nb:1", "y:2"}},
		{name: "never synced: nothing is given up", sources: sources("a"), now: []string{"nb:1", "x:1"}, want: []string{"nb:1", "x:1"}},
		{name: "never synced: in its place", sources: sources("a", "b x:2"), now: []string{"nb:1", "x:1"}, want: []string{"nb:1", "x:2", "x:1"}},
		{name: "never synced: behind, where its place is taken", sources: sources("a nb:2", "b"), now: []string{"nb:1"}, want: []string{"nb:2", "nb:1"}},
		{name: "never known: what others had before goes", sources: sources("a nb:3", "b"), record: sources("a nb:2", "b"), now: []string{"nb:2", "nb:1"}, want: []string{"nb:3", "nb:1"}},
		{name: "a template that the pool no longer has", sources: sources("a nb:1", "b"), record: sources("a nb:1", "c x:1"), now: []string{"nb:1", "x:1"}, want: []string{"nb:1"}},
		{name: "a record that is no image is none", sources: sources("a", "b"), record: sources("a  nb:1", "b"), now: []string{"nb:1"}, want: []string{"nb:1"}},
		{name: "nothing known, nothing pulled", sources: sources("a", "b"), want: []string{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := prepull.Images(test.sources, test.record, test.now)
			assert.Equal(t, test.want, got)
			assert.Equal(t, got, prepull.Images(test.sources, test.record, got), "again")
		})
	}
}

// A template that is missing from the start must not make a placeholder collect all images that another one ever had.
func TestImagesDoNotGrow(t *testing.T) {
	now := []string{"r/nb:0"}
	var record prepull.Record
	for _, image := range []string{"r/nb:1", "r/nb:2", "r/nb:3", "r/nb:4"} {
		known := sources("a "+image, "missing")
		now = prepull.Images(known, record, now)
		assert.Equal(t, []string{image, "r/nb:0"}, now)
		record = prepull.RecordOf(prepull.NewRecord(known, record).Annotations())
	}
}

// A template that allows many images does not fill the disks of a pool: the defaults of all templates come first, then what there
// is room for, and one problem says what is left out. What a placeholder pulls beyond that goes.
func TestSourcesAreBounded(t *testing.T) {
	var listed []string
	for i := range 40 {
		listed = append(listed, fmt.Sprintf("r/nb:%d", i))
	}
	known := cluster.Known(map[string]*cluster.WorkspaceTemplate{
		"shared/many": {DefaultImage: "r/nb:0", AllowedImages: listed}, "shared/other": {DefaultImage: "r/other:1", AllowedImages: []string{"r/nb:1", "r/other:2"}},
	})
	pool := &config.Pool{PrePull: config.PrePullAllowed, Templates: refs("shared/many", "shared/other")}
	sources := prepull.Sources(pool, &config.Workspaces{}, known)
	images := prepull.Images(sources, nil, listed)
	assert.Len(t, images, prepull.MaxImages)
	assert.Equal(t, "r/nb:14", images[14])
	assert.Equal(t, "r/other:1", images[15])
	var problems []string
	for _, s := range sources {
		assert.Equal(t, s.Problem != "", s.Beyond)
		if s.Beyond {
			problems = append(problems, s.Problem)
		}
	}
	assert.Equal(t, []string{
		"of the allowedImages of WorkspaceTemplate shared/many the 25 from allowedImages[15] on are not pulled ahead: a placeholder pulls 16 images at most",
		"of the allowedImages of WorkspaceTemplate shared/other the 1 from allowedImages[1] on are not pulled ahead: a placeholder pulls 16 images at most",
	}, problems)
	record := prepull.NewRecord(sources, nil)
	assert.Equal(t, record, prepull.NewRecord(sources, record), "again")
	assert.True(t, record.Covers(images))
}
