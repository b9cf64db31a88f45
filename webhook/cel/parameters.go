package cel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

// maxBytes is a little less than what an API server stores of an object.
const maxBytes = 1 << 20

// What a pool may have for the policy to stay below the cost at which the API server stops an expression, and leaves the pod
// as it is. test/integration/cel tries them with pods that are larger than any seen; at four times as many labels it was stopped.
const (
	maxPools     = 60
	maxLabels    = 2000 // of all NodePools of the pool, at least leastLabels for each
	leastLabels  = 20
	maxTemplates = 1000
	maxImages    = 1000
)

// parameters are the data that policy.yaml reads. What belongs to a pool has the pool's name before a dot.
//
//	plain            the pools whose nodes have no accelerators, in their order
//	accelerated      the others
//	placed_VALUE_…   what a pod has that requires a node label of these values, in this order, and is placed in its pool, where no
//	                 other pool has such nodes; lines: KEY, for each toleration KEY VALUE EFFECT OPERATOR, prefers image
//	device_NAME      the pools for pods that ask for this device alone, for usual ones; NAME has an underscore for its slash
//	accelerators     lines, for all resources that choose a pool: the name and a space, what names begin with, or a regular
//	                 expression that begins with ^
//	placeholders     the namespace of the placeholders
//	exemptions       lines: RULE NAMESPACE [NAME]
//	gpu.accelerators lines of the same kind for those of the pool's nodes
//	default          the Workspace controller's default namespace of templates; empty: not known
//	unlisted         NAMESPACE/NAME … of templates that exist and that no pool lists, though some pool lists one of that name
//	cpu.templates    NAMESPACE/NAME …
//	cpu.names        NAME … of those by which a pod is found whose template no pool lists
//	cpu.rules        the rules that are not off and may have something to fill in
//	cpu.key          the node label's KEY
//	cpu.values       its VALUE …
//	cpu.nodes        for each NodePool, after an empty line, lines: KEY OPERATOR VALUE … [& OPERATOR VALUE …], of which the operator
//	                 AtLeast has the number of values that must be left, and those one of which is enough
//	cpu.taints       lines: KEY EFFECT OPERATOR [VALUE], of which OPERATOR is that of the toleration to add
//	cpu.images       lines: IMAGE LABEL, of which LABEL is on the placeholders that have pulled the image
func parameters(e *policy.Evaluator) (map[string]string, error) {
	w := &writer{data: map[string]string{}}
	pools := e.Pools().All()
	if err := canBeWritten(pools); err != nil {
		return nil, err
	}
	var plain, accelerated []string
	var globs []string // those of the pools first: a pod of a pool is found among them
	for _, pool := range pools {
		if len(pool.Config.Accelerators) == 0 {
			plain = append(plain, pool.Config.Name)
		} else {
			accelerated = append(accelerated, pool.Config.Name)
		}
		globs = append(globs, pool.Config.Accelerators...)
		w.pool(pool, e.Filling(pool))
		w.words(pool.Config.Name+".names", e.Pools().StandIn(pool)...)
	}
	w.words("default", e.Config().Workspaces.DefaultTemplateNamespace)
	w.words("unlisted", e.Pools().Unlisted()...)
	w.atMost(maxTemplates, len(e.Pools().Unlisted()), "unlisted", "templates that no pool lists")
	w.words("plain", plain...)
	w.words("accelerated", accelerated...)
	w.atMost(maxPools, len(pools), "pools", "pools")
	w.globs("accelerators", append(globs, e.Pools().AcceleratorGlobs()...))
	for _, name := range e.Pools().UsualAccelerators() {
		var offering []string
		for _, pool := range pools {
			if pool.Offers([]string{name}) {
				offering = append(offering, pool.Config.Name)
			}
		}
		w.shortcut("device_"+strings.Replace(name, "/", "_", 1), w.line(name, offering))
	}
	for _, pool := range apart(pools) {
		w.placed("placed_"+strings.Join(pool.Requirement.Values, "_"), pool, e.Filling(pool))
	}
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
	w.fits()
	return w.data, w.err
}

// fits refuses data that no ConfigMap takes.
func (w *writer) fits() {
	size := 0
	for key, text := range w.data {
		size += len(key) + len(text)
	}
	if w.err == nil && size > maxBytes {
		w.err = fmt.Errorf("the parameters have %d bytes, more than the %d of a ConfigMap: list fewer templates or allowed images", size, maxBytes)
	}
}

// canBeWritten refuses pools of which the policy does not know all.
func canBeWritten(pools []*placement.Pool) error {
	for _, pool := range pools {
		if pool.Config.NamespaceSelector != nil {
			return fmt.Errorf("pool %s has a namespaceSelector, which the policy does not know: it would place pods of all namespaces; remove it, or keep the webhook of pods", pool.Config.Name)
		}
	}
	return nil
}

// writer fills the data and keeps the first error.
type writer struct {
	data map[string]string
	err  error
}

func (w *writer) pool(pool *placement.Pool, filling policy.Filling) {
	at := func(key string) string { return pool.Config.Name + "." + key }
	if len(pool.Config.Accelerators) > 0 {
		w.globs(at("accelerators"), pool.Config.Accelerators)
	}
	w.words(at("templates"), templates(pool.Config)...)
	w.atMost(maxTemplates, len(pool.Config.Templates), at("templates"), "templates")
	w.words(at("rules"), effective(pool, filling)...)
	w.words(at("key"), pool.Requirement.Key)
	w.words(at("values"), pool.Requirement.Values...)
	var nodePools []string
	count := 0
	for _, labels := range pool.NodeLabels() {
		nodePools = append(nodePools, w.nodes(at("nodes"), labels))
		count += max(len(labels), leastLabels)
	}
	w.atMost(maxLabels, count, at("nodes"), fmt.Sprintf("labels of %d NodePools, %d for each at least,", len(nodePools), leastLabels))
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
	w.atMost(maxImages, len(images), at("images"), "images")
}

// effective are the rules that may have something to fill in.
func effective(pool *placement.Pool, filling policy.Filling) []string {
	return slices.DeleteFunc(slices.Clone(filling.Rules), func(rule string) bool {
		return rule == "workspace-tolerations" && len(pool.Taints) == 0 || rule == "workspace-warm-first" && len(filling.Images) == 0
	})
}

// shortcut writes what the policy can do without, if a ConfigMap takes the key.
func (w *writer) shortcut(at, text string) {
	if len(validation.IsConfigMapKey(at)) == 0 {
		w.data[at] = text
	}
}

// placed writes what a pod of the pool has when nothing is left to fill in.
func (w *writer) placed(at string, pool *placement.Pool, filling policy.Filling) {
	lines := []string{w.line(at, []string{pool.Requirement.Key})}
	for _, t := range pool.Tolerations() {
		lines = append(lines, w.line(at, []string{t.Key, t.Value, string(t.Effect), string(t.Operator)}))
	}
	if len(filling.Images) > 0 {
		lines = append(lines, "prefers image")
	}
	w.shortcut(at, strings.Join(lines, "\n"))
}

func templates(pool *config.Pool) []string {
	refs := make([]string, 0, len(pool.Templates))
	for _, ref := range pool.Templates {
		refs = append(refs, ref.String())
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

// atMost refuses what may cost too much.
func (w *writer) atMost(limit, count int, at, what string) {
	if count > limit && w.err == nil {
		w.err = fmt.Errorf("%s: %d %s may cost more than the API server lets a policy cost (up to %d do not): pods would not be placed; split the pool, or keep the webhook of pods", at, count, what, limit)
	}
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

// globs says each glob as the policy takes the least time to read: a regular expression could say all of them, and takes the most.
func (w *writer) globs(at string, globs []string) {
	var lines []string
	for i, glob := range globs {
		if slices.Contains(globs[:i], glob) {
			continue
		}
		// A star stands for no slash, of which a resource's name has one at most.
		prefix, starred := strings.CutSuffix(glob, "*")
		switch special := strings.ContainsAny(prefix, `*?[\^`); {
		case !special && !starred:
			lines = append(lines, w.line(at, []string{glob})+" ")
		case !special && strings.Contains(prefix, "/"):
			lines = append(lines, w.line(at, []string{prefix}))
		default:
			pattern, err := regularExpression(glob)
			if err != nil && w.err == nil {
				w.err = fmt.Errorf("%s: %w", at, err)
			}
			lines = append(lines, w.line(at, []string{"^" + pattern + " $"}))
		}
	}
	w.data[at] = strings.Join(lines, "\n")
}

// apart are the pools whose label every NodePool of all other pools excludes.
func apart(pools []*placement.Pool) []*placement.Pool {
	var those []*placement.Pool
	for _, pool := range pools {
		excluded := len(pool.Requirement.Values) > 0
		for _, other := range pools {
			excluded = excluded && (other == pool || excludes(other.NodeLabels(), pool.Requirement))
		}
		if excluded {
			those = append(those, pool)
		}
	}
	return those
}

func excludes(nodePools []map[string][]corev1.NodeSelectorRequirement, required corev1.NodeSelectorRequirement) bool {
	for _, labels := range nodePools {
		if !slices.ContainsFunc(labels[required.Key], func(r corev1.NodeSelectorRequirement) bool {
			return r.Operator == corev1.NodeSelectorOpIn && sets.New(r.Values...).Intersection(sets.New(required.Values...)).Len() == 0
		}) {
			return false
		}
	}
	return len(nodePools) > 0
}
