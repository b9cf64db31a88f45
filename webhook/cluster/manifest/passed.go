package manifest

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/phrase"
)

// reason is why a document of a file is passed over.
type reason int

const (
	meant reason = iota // it is not: it is meant as an object that rules go by
	empty
	notObject
	notYAML
	template
	kustomization
	patch
	otherKind
)

// reasons say it of files, in the order of the notes.
var reasons = []struct {
	reason
	text string
}{
	{template, "unrendered templates: use the output of helm template, or of what else renders them"},
	{kustomization, "kustomizations: use the output of kubectl kustomize"},
	{patch, "patches of a kustomization: use the output of kubectl kustomize"},
	{notObject, "no Kubernetes objects"},
	{empty, "nothing but comments"},
	{notYAML, "neither YAML nor JSON"},
	{otherKind, "of kinds that no rule goes by, and not readable"},
}

// reasonFor says why a document, or an item with the content, is refused: it may not be meant as an object at all.
func reasonFor(doc document, content map[string]any) reason {
	if isKustomization(doc.file, content) {
		return kustomization
	}
	why := reasonForContent(content)
	if content == nil {
		why = reasonForText(doc.text)
	}
	if why != notObject && templateLine(doc.text) > 0 {
		return template
	}
	return why
}

func reasonForContent(content map[string]any) reason {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	_, hasMetadata := content["metadata"].(map[string]any)
	switch {
	case kind == "" || apiVersion == "" && (!isJudged(kind) || !hasMetadata):
		return notObject
	case isJudged(kind):
		return meant
	default:
		return otherKind
	}
}

// kindLine and apiVersionLine find out what a document that cannot be parsed is meant as.
var (
	kindLine       = regexp.MustCompile(`(?m)(?:^|[{,]\s*)["']?kind["']?:\s*["']?([A-Za-z]+)`)
	apiVersionLine = regexp.MustCompile(`(?m)(?:^|[{,]\s*)["']?apiVersion["']?:`)
)

func reasonForText(text string) reason {
	var parsed any
	if err := yaml.Unmarshal([]byte(text), &parsed); err == nil {
		content, ok := parsed.(map[string]any)
		if !ok {
			return notObject
		}
		return reasonForContent(content)
	}
	kind := kindLine.FindStringSubmatch(text)
	switch {
	case kind == nil || !apiVersionLine.MatchString(text):
		return notYAML
	case isJudged(kind[1]):
		return meant
	default:
		return otherKind
	}
}

// isJudged tells whether rules go by objects of the kind, or of the one that was probably meant.
func isJudged(kind string) bool {
	kind = strings.TrimSuffix(kind, "List")
	if kind == "" || judgedKinds[kind] {
		return true
	}
	near, ok := nearest(schema.GroupVersionKind{Kind: kind})
	return ok && judgedKinds[near.Kind]
}

var judgedKinds = func() map[string]bool {
	names := map[string]bool{}
	for kind := range newKinds() {
		names[kind.Kind] = true
	}
	return names
}()

// templateMark is what Helm, Go, Jinja and envsubst replace.
var templateMark = regexp.MustCompile(`\{\{|\{%|\$\{[A-Za-z_]`)

// templateLine is the first line, from 1, that is still to be rendered; 0: none.
func templateLine(text string) int {
	at := templateMark.FindStringIndex(text)
	if at == nil {
		return 0
	}
	return strings.Count(text[:at[0]], "\n") + 1
}

// unrendered is the error about a template, for behind the place.
func unrendered(doc document) error {
	return fmt.Errorf(", line %d: unrendered template; use the output of helm template, or of what else renders it", doc.line+templateLine(doc.text)-1)
}

const kustomizeGroup = "kustomize.config.k8s.io"

func isKustomization(file string, content map[string]any) bool {
	apiVersion, _ := content["apiVersion"].(string)
	return strings.HasPrefix(apiVersion, kustomizeGroup+"/") || slices.Contains([]string{"kustomization.yaml", "kustomization.yml"}, filepath.Base(file))
}

// patchesOf are the files that a kustomization names as patches: parts of objects, which are defined elsewhere.
func patchesOf(doc document) []string {
	var k struct {
		Patches, PatchesJSON6902 []struct{ Path string }
		PatchesStrategicMerge    []string
	}
	if err := yaml.Unmarshal([]byte(doc.text), &k); err != nil {
		return nil
	}
	var files []string
	add := func(name string) {
		if name != "" && !strings.Contains(name, "\n") && !path.IsAbs(name) {
			files = append(files, filepath.Join(filepath.Dir(doc.file), filepath.FromSlash(name)))
		}
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJSON6902) {
		add(p.Path)
	}
	for _, name := range k.PatchesStrategicMerge {
		add(name)
	}
	return files
}

// passedNotes say which files were passed over, and why.
func passedNotes(passed map[reason][]string) []string {
	var notes []string
	for _, r := range reasons {
		files := slices.Compact(slices.Sorted(slices.Values(passed[r.reason])))
		if len(files) > 0 {
			notes = append(notes, fmt.Sprintf("passed over %s (%s): %s", phrase.Count(len(files), "file"), r.text, phrase.Some(files, 5)))
		}
	}
	return notes
}
