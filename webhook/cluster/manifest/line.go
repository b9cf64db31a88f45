package manifest

import (
	"regexp"
	"slices"
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

// lastAsked keeps the blocks of the document of a file that was asked about last: they take many times the room of their
// text, and the questions about one document come together.
type lastAsked struct {
	mu   sync.Mutex
	doc  document
	root *block
}

func (l *lastAsked) line(doc document, path []string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.root == nil || l.doc.place != doc.place {
		root, ok := readBlocks(doc.text, true)
		if !ok {
			root = block{text: doc.text, line: 1}
		}
		l.doc, l.root = doc, &root
	}
	return l.root.find(path)
}

// find is the line of the part to which the path leads, or of the closest one around it.
func (b *block) find(path []string) int {
	if b.text != "" {
		return b.line - 1 + b.lineIn(path)
	}
	if len(path) == 0 {
		return b.line
	}
	part := b.part(path[0])
	switch {
	case part == nil:
		return b.line
	case part.text == "":
		return part.find(path[1:])
	case part.name == "":
		return part.find(append([]string{"0"}, path[1:]...)) // its text is a sequence of it alone
	default:
		return part.find(path)
	}
}

func (b *block) part(name string) *block {
	if _, isSequence := b.value.([]any); isSequence {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(b.parts) {
			return &b.parts[i]
		}
		return nil
	}
	i := slices.IndexFunc(b.parts, func(part block) bool { return part.name == name })
	if i < 0 {
		return nil
	}
	return &b.parts[i]
}

// lineIn is the line of the block's text, from 1, to which the path leads; the first where YAML's parser knows no lines.
func (b *block) lineIn(path []string) int {
	if b.node == nil {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(b.text), &document); err != nil || len(document.Content) == 0 {
			document.Content = []*yaml.Node{{Line: 1}}
		}
		b.node = document.Content[0]
	}
	node, line := b.node, b.node.Line
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
