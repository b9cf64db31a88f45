package cluster

import (
	gojson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// Decode reads the JSON content of an object into a typed value. It returns the fields that the type does not know,
// in the words of sigs.k8s.io/json, and an error that names the field whose value does not fit. A quantity that would
// take long to parse does not.
func Decode(content map[string]any, into any) (unknown []error, err error) {
	if err := checkQuantities(nil, content, reflect.TypeOf(into)); err != nil {
		return nil, err
	}
	if convert(content, into) {
		return nil, nil
	}
	data, err := gojson.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	unknown, err = json.UnmarshalStrict(data, into, json.DisallowUnknownFields)
	if err == nil {
		return unknown, nil
	}
	path := misfit(content, func(part any) bool {
		data, err := gojson.Marshal(part)
		if err != nil {
			return false
		}
		return json.UnmarshalCaseSensitivePreserveInts(data, reflect.New(reflect.TypeOf(into).Elem()).Interface()) != nil
	})
	return nil, fmt.Errorf("%s: %w", path, plain(err))
}

// convert does what the decoder would, without the way over JSON's text. Not ok is content in which the decoder may find
// something wrong: it has the words for that.
func convert(content map[string]any, into any) (ok bool) {
	if smallNumbers(content) && runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, into, true) == nil {
		return true
	}
	reflect.ValueOf(into).Elem().SetZero()
	return false
}

// smallNumbers tells whether all numbers are integers of 32 bits: the converter cuts larger ones and fractions to fit.
func smallNumbers(content any) bool {
	switch value := content.(type) {
	case map[string]any:
		for _, member := range value {
			if !smallNumbers(member) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if !smallNumbers(item) {
				return false
			}
		}
	case int64:
		return value == int64(int32(value)) //nolint:gosec // that is the question
	case nil, string, bool:
	default:
		return false
	}
	return true
}

// misfit finds the field for which fails reports true, because decoders name it without indexes or, for quantities and
// times, not at all. It halves the fields of each level, so it costs few decodings even for wide objects.
func misfit(content any, fails func(any) bool) *field.Path {
	var path *field.Path
	for {
		switch value := content.(type) {
		case map[string]any:
			if fails(map[string]any{}) {
				return path
			}
			name, found := guilty(slices.Sorted(maps.Keys(value)), func(names []string) bool {
				part := make(map[string]any, len(names))
				for _, name := range names {
					part[name] = value[name]
				}
				return fails(part)
			})
			if !found {
				return path
			}
			outer := fails
			path, content = path.Child(name), value[name]
			fails = func(part any) bool { return outer(map[string]any{name: part}) }
		case []any:
			if fails([]any{}) {
				return path
			}
			index, found := guilty(indexes(value), func(indexes []int) bool {
				return fails(value[indexes[0] : indexes[len(indexes)-1]+1])
			})
			if !found {
				return path
			}
			outer := fails
			path, content = path.Index(index), value[index]
			fails = func(part any) bool { return outer([]any{part}) }
		default:
			return path
		}
	}
}

// guilty returns a candidate that fails; none when no single one does.
func guilty[T any](candidates []T, fails func([]T) bool) (T, bool) {
	var none T
	if len(candidates) == 0 {
		return none, false
	}
	for len(candidates) > 1 {
		half := len(candidates) / 2
		if fails(candidates[:half]) {
			candidates = candidates[:half]
		} else {
			candidates = candidates[half:]
		}
	}
	return candidates[0], fails(candidates)
}

func indexes(list []any) []int {
	all := make([]int, len(list))
	for i := range all {
		all[i] = i
	}
	return all
}

// plain words the decoder's type errors for people who write YAML, not Go.
func plain(err error) error {
	var mismatch *gojson.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	want := mismatch.Type.String()
	switch mismatch.Type.Kind() {
	case reflect.String:
		want = "a string (put the value in quotes)"
	case reflect.Bool:
		want = "true or false"
	case reflect.Struct, reflect.Map:
		want = "an object (key: value)"
	case reflect.Slice, reflect.Array:
		want = "a list (- value)"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want = "a whole number"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	default: // the type's own name says it best
	}
	return fmt.Errorf("got a value of type %s, want %s", mismatch.Value, want)
}
