package manifest

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// position is where an object stands in its file.
type position struct {
	// root is the document as YAML nodes; nil where YAML's parser knows no lines of it.
	root func() *yaml.Node
	// line of the file, from 1, where the document begins, and the path of the object in it, such as "items[2].".
	line int
	path string
}

// Line is the line of File, from 1, where the field stands, such as "spec.template.spec.containers[0].image" or
// "metadata.labels[example.com/key]". Where the object has no such field it is the line of the closest one around it,
// and for an empty path that of the object. It is 0 for an object that was read from no file.
func (o Object) Line(field string) int {
	if o.position.root == nil {
		return 0
	}
	node := o.position.root()
	if node == nil {
		return o.position.line
	}
	line := node.Line
	for _, step := range steps.FindAllString(o.position.path+field, -1) {
		at, value := child(node, strings.Trim(step, "[]"))
		if value == nil {
			break
		}
		line, node = at, value
	}
	return o.position.line + line - 1
}

// steps are the names and indices of a field path.
var steps = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

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

// parsed keeps the nodes of one document of a file: nodes take many times the room of their text, and the questions about
// one document come together.
type parsed struct {
	mu    sync.Mutex
	place string
	node  *yaml.Node
}

func (p *parsed) root(doc document) *yaml.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.place != doc.place {
		p.place, p.node = doc.place, doc.root()
	}
	return p.node
}

// root is the document's content as YAML nodes; nil where it cannot be parsed so.
func (d document) root() *yaml.Node {
	var parsed yaml.Node
	if err := yaml.Unmarshal(d.text, &parsed); err != nil || len(parsed.Content) == 0 {
		return nil
	}
	return parsed.Content[0]
}
