package manifest

import (
	"strings"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
)

// quick reads the usual document in one pass, with the parsers of the builder, which turns YAML into JSON and parses that
// three times. It gives what the builder would, or not ok where that is not certain: the builder then decides.
func quick(text string) (content map[string]any, ok bool) {
	if yaml.IsJSONBuffer([]byte(text)) {
		err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &content)
		return content, err == nil && wholeList(content)
	}
	// A MapSlice is built much faster than a map, but loses what << merges, as do blocks.
	if strings.Contains(text, "<<") {
		return nil, false
	}
	if root, ok := readBlocks(text, false); ok {
		content, ok = root.value.(map[string]any)
		return content, ok && wholeList(content)
	}
	var parsed goyaml.MapSlice
	if err := goyaml.Unmarshal([]byte(text), &parsed); err != nil || len(parsed) == 0 {
		return nil, false
	}
	object, ok := asJSON(parsed)
	if !ok {
		return nil, false
	}
	content, ok = object.(map[string]any)
	return content, ok && wholeList(content)
}

// asJSON turns what YAML's parser gave into what JSON's would. Not ok are values that JSON writes in another way, such as
// floats, and keys that are no strings.
func asJSON(value any) (converted any, ok bool) {
	switch value := value.(type) {
	case nil, bool:
		return value, true
	case int:
		return int64(value), true
	case string:
		return value, utf8.ValidString(value)
	case []any:
		for i := range value {
			if value[i], ok = asJSON(value[i]); !ok {
				return nil, false
			}
		}
		return value, true
	case goyaml.MapSlice:
		object := make(map[string]any, len(value))
		for _, member := range value {
			name, ok := member.Key.(string)
			if !ok || !utf8.ValidString(name) {
				return nil, false
			}
			if object[name], ok = asJSON(member.Value); !ok {
				return nil, false
			}
		}
		return object, true
	default:
		return nil, false
	}
}

// wholeList tells whether the content is no list, or one of which each item says what it is: the kind of others follows
// from that of the list.
func wholeList(content map[string]any) bool {
	list, isList := content["items"]
	if !isList {
		return true
	}
	items, ok := list.([]any)
	if !ok || check(content) != nil {
		return false
	}
	for _, item := range items {
		object, ok := item.(map[string]any)
		if kind, isString := object["kind"].(string); !ok || !isString || kind == "" {
			return false
		}
	}
	return true
}
