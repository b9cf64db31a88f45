package cel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

// maxBytes is a little less than what an API server stores of an object.
const maxBytes = 1 << 20

// parameters are the data that policy.yaml reads. What belongs to a pool has the pool's name before a dot.
//
//	pools            the names, in their order
//	accelerators     a regular expression over all resources that choose a pool
//	placeholders     the namespace of the placeholders
//	exemptions       lines: RULE NAMESPACE [NAME]
//	cpu.accelerators a regular expression over those of the pool's nodes; empty: they have none
//	cpu.templates    NAMESPACE/NAME …
//	cpu.rules        the rules that are not off
//	cpu.label        KEY VALUE … of the node label
//	cpu.nodes        for each NodePool, after an empty line, lines: KEY OPERATOR VALUE … [& OPERATOR VALUE …]
//	cpu.taints       lines: KEY EFFECT OPERATOR [VALUE], of which OPERATOR is that of the toleration to add
//	cpu.images       lines: IMAGE LABEL, of which LABEL is on the placeholders that have pulled the image
func parameters(e *policy.Evaluator) (map[string]string, error) {
	w := &writer{data: map[string]string{}}
	var names []string
	for _, pool := range e.Pools().All() {
		names = append(names, pool.Config.Name)
		w.pool(pool, e.Filling(pool))
	}
	w.words("pools", names...)
	w.data["accelerators"] = w.pattern("accelerators", e.Pools().AcceleratorGlobs())
	w.words("placeholders", e.Config().Placeholders.Namespace)
	var exemptions []string
	for _, x := range e.Exemptions() {
		if strings.ContainsAny(x.Name, " \n") {
			continue // no object has such a name
		}
		for _, rule := range x.Rules {
			exemptions = append(exemptions, strings.TrimSuffix(rule+" "+x.Namespace+" "+x.Name, " "))
		}
	}
	w.data["exemptions"] = strings.Join(exemptions, "\n")
	size := 0
	for key, text := range w.data {
		size += len(key) + len(text)
	}
	if w.err == nil && size > maxBytes {
		w.err = fmt.Errorf("the parameters have %d bytes, more than the %d of a ConfigMap: list fewer templates or allowed images", size, maxBytes)
	}
	return w.data, w.err
}

// writer fills the data and keeps the first error.
type writer struct {
	data map[string]string
	err  error
}

func (w *writer) pool(pool *placement.Pool, filling policy.Filling) {
	at := func(key string) string { return pool.Config.Name + "." + key }
	w.data[at("accelerators")] = ""
	if len(pool.Config.Accelerators) > 0 {
		w.data[at("accelerators")] = w.pattern(at("accelerators"), pool.Config.Accelerators)
	}
	w.words(at("templates"), templates(pool.Config)...)
	w.words(at("rules"), filling.Rules...)
	w.words(at("label"), append([]string{pool.Requirement.Key}, pool.Requirement.Values...)...)
	var nodePools []string
	for _, labels := range pool.NodeLabels() {
		nodePools = append(nodePools, w.nodes(at("nodes"), labels))
	}
	w.data[at("nodes")] = strings.Join(nodePools, "\n\n")
	var taints []string
	for i, toleration := range pool.Tolerations() {
		line := []string{toleration.Key, string(toleration.Effect), string(toleration.Operator)}
		if value := pool.Taints[i].Value; value != "" {
			line = append(line, value)
		}
		taints = append(taints, w.line(at("taints"), line))
	}
	w.data[at("taints")] = strings.Join(taints, "\n")
	var images []string
	for _, image := range filling.Images {
		images = append(images, w.line(at("images"), []string{image, prepull.ImageLabel(image)}))
	}
	w.data[at("images")] = strings.Join(images, "\n")
}

func templates(pool *config.Pool) []string {
	refs := make([]string, 0, len(pool.Templates))
	for _, ref := range pool.Templates {
		refs = append(refs, ref.Namespace+"/"+ref.Name)
	}
	return refs
}

// nodes writes what a NodePool says of the labels of its nodes.
func (w *writer) nodes(at string, labels map[string][]corev1.NodeSelectorRequirement) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		var requirements []string
		for _, r := range labels[key] {
			requirements = append(requirements, w.line(at, append([]string{string(r.Operator)}, r.Values...)))
		}
		lines = append(lines, w.line(at, []string{key})+" "+strings.Join(requirements, " & "))
	}
	return strings.Join(lines, "\n")
}

func (w *writer) words(at string, words ...string) { w.data[at] = w.line(at, words) }

// line joins words by spaces.
func (w *writer) line(at string, words []string) string {
	for _, word := range words {
		if w.err == nil && (strings.ContainsAny(word, " \n") || word == "&") {
			w.err = fmt.Errorf("%s: %q is not one word, and parameters of CEL are lines of words: correct it where it comes from", at, word)
		}
	}
	return strings.Join(words, " ")
}

// pattern is the regular expression that matches what any of the globs does.
func (w *writer) pattern(at string, globs []string) string {
	var patterns []string
	for _, glob := range sets.List(sets.New(globs...)) {
		pattern, err := regularExpression(glob)
		if err != nil && w.err == nil {
			w.err = fmt.Errorf("%s: %w", at, err)
		}
		patterns = append(patterns, pattern)
	}
	return "^(" + strings.Join(patterns, "|") + ")$"
}
