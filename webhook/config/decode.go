package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/quantity"
)

// maxCost bounds the work on a file of very many values or whose aliases (*name) multiply: 100,000 values or 2 MiB of text,
// a hundred times what a real file has. A value costs valueCost and its length.
const (
	maxCost   = 2 * MaxSize
	valueCost = maxCost / 100_000
)

// decoder fills a value from a YAML node tree by the value's json tags. A decoder of our own, because none tells the line,
// the whole path and every fault: yaml.v3 knows no json tags, and the json decoders know no lines and stop at a wrong type.
type decoder struct {
	lines    map[string]int // by field path
	cost     int
	problems []problem
}

func (d *decoder) fail(line int, format string, args ...any) {
	d.problems = append(d.problems, problem{line, fmt.Errorf(format, args...)})
}

// wrong says that the node at p is not what it must be.
func (d *decoder) wrong(p *field.Path, n *yaml.Node, want, fix string) {
	d.fail(d.lines[p.String()], "%s must be %s, not %s%s", p, want, describe(n), fix)
}

// decode sets v, which must be addressable, from n. An empty value counts as absent.
func (d *decoder) decode(p *field.Path, n *yaml.Node, v reflect.Value) {
	if d.cost > maxCost {
		return
	}
	if _, ok := d.lines[p.String()]; !ok {
		d.lines[p.String()] = n.Line
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.cost += valueCost + len(n.Value); d.cost > maxCost {
		d.fail(d.lines[p.String()], "the configuration has too many values up to here, those of aliases (*name) counted each time; make it smaller")
		return
	}
	if n.ShortTag() == "!!null" {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	target := v.Addr().Interface()
	text, isText := target.(json.Unmarshaler)
	switch kind := v.Kind(); {
	case isText:
		d.text(p, n, text)
	case kind == reflect.Struct:
		d.fields(p, n, v)
	case kind == reflect.Map:
		d.entries(p, n, v)
	case kind == reflect.Slice:
		d.items(p, n, v)
	case kind == reflect.String:
		d.str(p, n, v)
	case kind == reflect.Int32 && n.ShortTag() != "!!int": // 2.5 would be 2
		d.wrong(p, n, "a whole number", "")
	case n.Decode(target) != nil:
		d.wrong(p, n, map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int32: "a smaller number", reflect.Float64: "a number"}[kind], "")
	}
}

func (d *decoder) fields(p *field.Path, n *yaml.Node, v reflect.Value) {
	names, index := fieldsOf(v.Type())
	path := func(name string) *field.Path { return p.Child(name) }
	d.pairs(p, n, path, func(at *field.Path, key, value *yaml.Node) {
		i, ok := index[key.Value]
		if !ok {
			known := didYouMean(key.Value, names)
			if known == "" {
				known = fmt.Sprintf(" (the fields here are %s)", strings.Join(slices.Sorted(slices.Values(names)), ", "))
			}
			d.fail(key.Line, "unknown field %q%s", clip(at.String()), known)
			return
		}
		d.decode(at, value, v.FieldByIndex(i))
	})
}

func (d *decoder) entries(p *field.Path, n *yaml.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.pairs(p, n, p.Key, func(at *field.Path, key, value *yaml.Node) {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.decode(at, value, elem)
		v.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), elem)
	})
}

func (d *decoder) items(p *field.Path, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(p, n, "a list", "")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.decode(p.Index(i), item, v.Index(i))
	}
}

// pairs calls do for each key of the mapping n that stands there for the first time.
func (d *decoder) pairs(p *field.Path, n *yaml.Node, path func(string) *field.Path, do func(at *field.Path, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.wrong(p, n, "a mapping", "")
		return
	}
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			d.fail(key.Line, "a key must be plain text, not a merge (<<), alias, list or mapping; write the fields out")
			continue
		}
		at := path(key.Value)
		if line, ok := first[key.Value]; ok {
			d.fail(key.Line, "duplicate field %q (first on line %d); remove one of them", clip(at.String()), line)
			continue
		}
		first[key.Value] = key.Line
		d.lines[at.String()] = key.Line
		do(at, key, value)
	}
}

// str takes only what YAML takes for text too: from a number or a boolean the writer's spelling (1.10, 0x10, yes) is lost in
// other tools. Unquoted dates are text in the tools of Kubernetes.
func (d *decoder) str(p *field.Path, n *yaml.Node, v reflect.Value) {
	tag := n.ShortTag()
	switch {
	case n.Kind == yaml.ScalarNode && (tag == "!!str" || tag == "!!timestamp"):
		v.SetString(n.Value)
	case n.Kind == yaml.ScalarNode:
		d.wrong(p, n, "a string", fmt.Sprintf("; put it in quotes: %q", clip(n.Value)))
	default:
		d.wrong(p, n, "a string", "")
	}
}

// text decodes durations and quantities, which have their own form. quantity.Check does no harm to durations.
func (d *decoder) text(p *field.Path, n *yaml.Node, u json.Unmarshaler) {
	want := "a quantity such as 500m or 16Gi"
	if _, ok := u.(*metav1.Duration); ok {
		want = "a duration such as 30s, 10m or 1h"
	}
	quoted, err := json.Marshal(n.Value)
	if n.Kind != yaml.ScalarNode || quantity.Check(n.Value) != nil || err != nil || u.UnmarshalJSON(quoted) != nil {
		d.wrong(p, n, want, "")
	}
}

// fieldsOf returns the json names of a struct's fields in order, those of embedded structs included, and where they are.
func fieldsOf(t reflect.Type) (names []string, index map[string][]int) {
	index = map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
			index[name] = f.Index
		}
	}
	return names, index
}

// describe says what a node is, for messages.
func describe(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case tag == "!!null":
		return "empty"
	case tag == "!!int" || tag == "!!float":
		return "the number " + clip(n.Value)
	case tag == "!!bool":
		return "the boolean " + clip(n.Value)
	case tag == "!!str":
		return fmt.Sprintf("the string %q", clip(n.Value))
	default:
		return "a value of type " + clip(tag)
	}
}

// clip keeps hostile values from filling the message.
func clip(s string) string { return phrase.Cut(s, 80) }
