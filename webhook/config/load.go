package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxSize is the largest configuration file in bytes (1 MiB, which is also the largest ConfigMap).
const MaxSize = 1 << 20

// maxProblems bounds an error's length: it ends up in Events and terminals.
const maxProblems = 20

// Load decodes a configuration file (YAML or JSON, one document) strictly, sets the defaults and validates the result.
// ruleIDs are the rules that the file may name. The error tells every problem, one a line, with its line in the file and
// its field path; problems of form hide those of content.
func Load(data []byte, ruleIDs []string) (*WarmPoolConfiguration, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	if err := checkHeader(root); err != nil {
		return nil, err
	}
	var c WarmPoolConfiguration
	d := decoder{lines: map[string]int{}}
	d.decode(nil, root, reflect.ValueOf(&c).Elem())
	if len(d.problems) > 0 {
		return nil, join(d.problems)
	}
	SetDefaults(&c)
	var invalid []problem
	for _, e := range Validate(&c, ruleIDs) {
		invalid = append(invalid, problem{d.lineOf(e.Field), e})
	}
	if len(invalid) > 0 {
		return nil, join(invalid)
	}
	return &c, nil
}

// parse returns the root mapping of the only document in data. Documents without content are left out, since a file may
// well begin or end with "---".
func parse(data []byte) (*yaml.Node, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("the configuration is larger than 1 MiB (%d bytes); remove what does not belong to it", MaxSize)
	}
	var root *yaml.Node
	for docs := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		err := docs.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the configuration is neither YAML nor JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		content := doc.Content[0]
		switch {
		case content.ShortTag() == "!!null":
		case root != nil:
			return nil, fmt.Errorf("line %d: a second document begins here; the file must hold only one: remove the other", content.Line)
		case content.Kind != yaml.MappingNode:
			return nil, fmt.Errorf("line %d: the configuration must be a mapping with apiVersion, kind and pools, not %s", content.Line, describe(content))
		default:
			root = content
		}
	}
	if root == nil {
		return nil, fmt.Errorf("the configuration is empty; it must have apiVersion: %s, kind: %s and at least one pool", APIVersion, Kind)
	}
	return root, nil
}

// checkHeader comes before the fields, so that another kind of file gives one message and not dozens.
func checkHeader(root *yaml.Node) error {
	var problems []problem
	for _, f := range []struct{ name, want string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		i := 0
		for i < len(root.Content) && root.Content[i].Value != f.name {
			i += 2
		}
		if i >= len(root.Content) {
			problems = append(problems, problem{root.Line, fmt.Errorf("%s is missing; write %s: %s", f.name, f.name, f.want)})
			continue
		}
		if got := root.Content[i+1]; got.Value != f.want {
			problems = append(problems, problem{root.Content[i].Line, fmt.Errorf("%s must be %q, not %s", f.name, f.want, describe(got))})
		}
	}
	return join(problems)
}

// problem is an error and the line of the file that it is about.
type problem struct {
	line int
	err  error
}

// join returns one error for all problems in the order of their lines, nil for none.
func join(problems []problem) error {
	slices.SortStableFunc(problems, func(a, b problem) int { return a.line - b.line })
	var errs []error
	for i, p := range problems {
		if i == maxProblems {
			errs = append(errs, fmt.Errorf("and %d more", len(problems)-maxProblems))
			break
		}
		errs = append(errs, fmt.Errorf("line %d: %w", p.line, p.err))
	}
	return errors.Join(errs...)
}

// lineOf returns the line of the field, or of the closest one around it where the field itself is not in the file.
func (d *decoder) lineOf(path string) int {
	for {
		if line, ok := d.lines[path]; ok {
			return line
		}
		end := strings.LastIndexAny(path, ".[")
		if end < 0 {
			return d.lines[(*field.Path)(nil).String()]
		}
		path = path[:end]
	}
}
