package chart

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	jsonyaml "sigs.k8s.io/yaml"
)

// width is that of a comment's lines.
const width = 110

// YAML is the values file: each remark is a comment above the field that it is about.
func (p *Proposal) YAML(heading ...string) ([]byte, error) {
	content, err := jsonyaml.Marshal(p.Values)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	root := document.Content[0]
	order(root, "image", "namespace", "placement", "certs", "placeholders", "workspaces", "pools")
	p.rehome(root)
	walk(root, "", func(path string, node *yaml.Node) { node.HeadComment = p.commentOn(path) })
	var out bytes.Buffer
	for _, line := range append(heading, p.Remarks...) {
		out.WriteString(comment(line) + "\n")
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err = encoder.Encode(root)
	return out.Bytes(), err
}

// order puts the named fields first, in pools too, and writes what is small in one line.
func order(node *yaml.Node, first ...string) {
	if node.Kind != yaml.MappingNode {
		return
	}
	var ordered, rest []*yaml.Node
	for _, name := range first {
		for i := 0; i < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				ordered = append(ordered, node.Content[i], node.Content[i+1])
			}
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		orderField(key.Value, value)
		if !slices.Contains(first, key.Value) {
			rest = append(rest, key, value)
		}
	}
	node.Content = append(ordered, rest...)
}

// orderField orders what a field holds.
func orderField(name string, value *yaml.Node) {
	switch name {
	case "pools":
		for _, pool := range value.Content {
			order(pool, "name", "nodePools", "nodeLabel", "accelerators", "taints", "nodeTaints", "templates", "sizing")
		}
	case "placeholders":
		for _, placeholder := range value.Content {
			order(placeholder, "name", "zones", "images", "requests", "replicas", "scaling")
		}
		if value.Kind == yaml.MappingNode {
			value.Style = yaml.FlowStyle
		}
	case "exemptions":
		for _, exemption := range value.Content {
			exemption.Style = yaml.FlowStyle
		}
	default:
		for _, element := range value.Content {
			order(element, "namespace", "name")
		}
		order(value, "mode", "nodesPerReplica", "min", "max", "cpu", "memory")
		if value.Kind != yaml.ScalarNode {
			value.Style = yaml.FlowStyle
		}
	}
}

// rehome gives remarks on fields that are left out to what holds them.
func (p *Proposal) rehome(root *yaml.Node) {
	there := map[string]bool{"": true}
	walk(root, "", func(path string, _ *yaml.Node) { there[path] = true })
	for _, path := range sortedKeys(p.Of) {
		home := path
		for !there[home] {
			home = home[:max(strings.LastIndexAny(home, ".["), 0)]
		}
		if home != path {
			p.Of[home] = append(p.Of[home], p.Of[path]...)
			delete(p.Of, path)
		}
	}
	p.Remarks = append(p.Remarks, p.Of[""]...)
}

// walk calls f for each field and each element with its path, on the node that a comment belongs to.
func walk(node *yaml.Node, path string, f func(path string, node *yaml.Node)) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			at := strings.TrimPrefix(path+"."+node.Content[i].Value, ".")
			f(at, node.Content[i])
			walk(node.Content[i+1], at, f)
		}
	case yaml.SequenceNode:
		for i, element := range node.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			f(at, element)
			walk(element, at, f)
		}
	default: // has no fields
	}
}

func (p *Proposal) commentOn(path string) string {
	var lines []string
	for _, remark := range p.Of[path] {
		lines = append(lines, comment(remark))
	}
	return strings.Join(lines, "\n")
}

// deleteDeployment is a command of its own line, to be copied.
const deleteDeployment = "kubectl -n %s delete deployment %s"

// comment breaks a text into lines of a comment; one that follows a line break is a command and stays whole. What the text quotes
// of a cluster cannot end a comment.
func comment(text string) string {
	said, command, _ := strings.Cut(strings.ToValidUTF8(text, "?"), "\n")
	var lines []string
	line := "#"
	for word := range strings.FieldsSeq(said) {
		if len(line)+1+len(word) > width && line != "#" && line != "#  " {
			lines, line = append(lines, line), "#  "
		}
		line += " " + word
	}
	lines = append(lines, line)
	if words := strings.Fields(command); len(words) > 0 {
		lines = append(lines, "#   "+strings.Join(words, " "))
	}
	return strings.Join(lines, "\n")
}
