package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/quantity"
)

// maxUnknown is how many unknown fields of an object are named: no one corrects more at once.
const maxUnknown = 20

// UnknownField is the error for a field that a type does not have.
type UnknownField struct{ Path *field.Path }

func (u UnknownField) Error() string { return fmt.Sprintf("unknown field %q", u.Path) }

// Decode reads the JSON content of an object into a typed value. It returns the fields that the type does not have, and an
// error that names the field whose value does not fit. A quantity that would take long to parse does not.
func Decode(content map[string]any, into any) (unknown []UnknownField, err error) {
	for {
		misfit, err := decode(content, into, len(unknown) < maxUnknown)
		switch {
		case err != nil:
			return nil, err
		case misfit == nil:
			return unknown, nil
		}
		path, parent, name := find(content, misfit.JSONPointer)
		if !errors.Is(misfit, json.ErrUnknownName) {
			return nil, fmt.Errorf("%s: %w", path, plain(misfit))
		}
		// The decoder stops at the first: it goes on in a copy without it.
		if len(unknown) == 0 {
			content = runtime.DeepCopyJSON(content)
			_, parent, _ = find(content, misfit.JSONPointer)
		}
		delete(parent, name)
		unknown = append(unknown, UnknownField{path})
	}
}

// decode gives the value that does not fit, or that is not known where those are refused.
func decode(content map[string]any, into any, strict bool) (misfit *json.SemanticError, err error) {
	data, err := json.Marshal(content, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	options := []json.Options{jsontext.AllowInvalidUTF8(true), json.RejectUnknownMembers(strict)}
	if quantity.Suspect(data) {
		options = append(options, json.WithUnmarshalers(quantity.Unmarshalers))
	}
	reflect.ValueOf(into).Elem().SetZero()
	if err := json.Unmarshal(data, into, options...); !errors.As(err, &misfit) {
		return nil, err
	}
	return misfit, nil
}

// find gives the path to which a pointer leads, and the object and the name in it that it ends with.
func find(content map[string]any, pointer jsontext.Pointer) (path *field.Path, parent map[string]any, name string) {
	var value any = content
	for token := range pointer.Tokens() {
		switch in := value.(type) {
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return path, nil, ""
			}
			path, value = path.Index(i), in[i]
		case map[string]any:
			path, value, parent, name = path.Child(token), in[token], in, token
		}
	}
	return path, parent, name
}

// kindsOfJSON are those whose name is not what YAML calls them.
var kindsOfJSON = map[jsontext.Kind]string{'{': "object", '[': "array", 't': "bool", 'f': "bool"}

// plain words the decoder's errors for people who write YAML, not Go.
func plain(misfit *json.SemanticError) error {
	if misfit.GoType == nil {
		return misfit.Err
	}
	if misfit.Err != nil && !isNumber(misfit.GoType.Kind()) { // of a type that reads itself, such as a quantity
		return misfit.Err
	}
	got, named := kindsOfJSON[misfit.JSONKind]
	if !named {
		got = misfit.JSONKind.String()
	}
	if misfit.JSONKind == '0' {
		got = strings.TrimSpace("number " + string(misfit.JSONValue))
	}
	return fmt.Errorf("got a value of type %s, want %s", got, wanted(misfit.GoType))
}

// wanted says of what type a value is to be.
func wanted(of reflect.Type) string {
	switch kind := of.Kind(); {
	case kind == reflect.String:
		return "a string (put the value in quotes)"
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.Struct || kind == reflect.Map:
		return "an object (key: value)"
	case kind == reflect.Slice || kind == reflect.Array:
		return "a list (- value)"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "a number"
	case isNumber(kind):
		return "a whole number"
	default:
		return of.String()
	}
}

func isNumber(kind reflect.Kind) bool { return reflect.Int <= kind && kind <= reflect.Float64 }
