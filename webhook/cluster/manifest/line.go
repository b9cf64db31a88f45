package manifest

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// position is where an object stands in its file: the document, and the path in it, such as "items[2].".
type position struct {
	last *lastAsked // nil: read from no file
	doc  document
	path string
}

// Line is the line of File, from 1, where the field stands, such as "spec.template.spec.containers[0].image" or
// "metadata.labels[example.com/key]". Where the object has no such field it is the line of the closest one around it,
// and for an empty path that of the object. It is 0 for an object that was read from no file.
func (o Object) Line(field string) int {
	at := o.position
	if at.last == nil {
		return 0
	}
	path := steps.FindAllString(at.path+field, -1)
	for i := range path {
		path[i] = strings.Trim(path[i], "[]")
	}
	return at.doc.line + at.last.line(at.doc, path) - 1
}

// steps are the names and indices of a field path.
var steps = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// lastAsked keeps the parsed document of a file that was asked about last: it takes many times the room of its text, and
// the questions about one document come together.
type lastAsked struct {
	mu   sync.Mutex
	doc  document
	root *yaml.Node
}

// line is the line of the document, from 1, to which the path leads, or of the closest field around it; the first where
// the document cannot be parsed.
func (l *lastAsked) line(doc document, path []string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.root == nil || l.doc.place != doc.place {
		var parsed yaml.Node
		if err := yaml.Unmarshal([]byte(doc.text), &parsed); err != nil || len(parsed.Content) == 0 {
			parsed.Content = []*yaml.Node{{Line: 1}}
		}
		l.doc, l.root = doc, parsed.Content[0]
	}
	node, line := l.root, l.root.Line
	for _, name := range path {
		at, value := child(node, name)
		if value == nil {
			break
		}
		line, node = at, value
	}
	return line
}

// child is the value of a mapping or the item of a sequence, with the line where it begins; nil when there is none.
func child(node *yaml.Node, name string) (line int, value *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i].Line, node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i].Line, node.Content[i]
		}
	default: // nothing is inside
	}
	return 0, nil
}
