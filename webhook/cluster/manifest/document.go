package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// document is one YAML or JSON document of a file.
type document struct {
	text  string
	file  string // as messages name it
	line  int    // of the file, from 1, where the text starts
	place string // for messages
}

// file reads the objects of one file. It goes on after a broken document, to report all of them.
func (r *reader) file(from source) *contents {
	c := &contents{}
	file := display(from.path)
	data, err := content(from.path, r.stdin)
	if err != nil {
		c.fail(from, err)
		return c
	}
	documents, err := split(data)
	if err != nil {
		r.reject(c, document{text: string(data), file: file, line: 1, place: file}, nil, fmt.Errorf(", %w", err))
		return c
	}
	number := 1
	last := new(lastAsked)
	for _, doc := range documents {
		doc.file, doc.place = file, place(file, number)
		found, empty, err := decode(doc)
		if empty {
			continue
		}
		if err != nil {
			r.reject(c, doc, nil, err)
		}
		for _, item := range found {
			if err := check(item.Object); err != nil {
				r.reject(c, doc, item.Object, fmt.Errorf(": %s%w", item.path, err))
				continue
			}
			if isNone(file, item.Object) {
				r.reject(c, doc, item.Object, errNotObject)
				continue
			}
			assumed := scopeOf(item.GroupVersionKind().GroupKind()).place(item.Unstructured, r.Namespace)
			at := position{last: last, doc: doc, path: item.path}
			object := Object{Unstructured: item.Unstructured, File: file, Document: number, position: at, assumed: assumed}
			r.see(&object)
			c.objects = append(c.objects, object)
		}
		if len(c.refused) > maxErrors {
			c.objects = nil
			return c
		}
		number++
	}
	if number == 1 {
		r.holdsNothing(c, from)
	}
	return c
}

// fail notes that a file cannot be read.
func (c *contents) fail(from source, err error) {
	if from.given {
		c.refused = append(c.refused, err)
	} else {
		c.broken = append(c.broken, err)
	}
}

// holdsNothing notes a file without content. What a pipe brings is nothing where the program before it failed.
func (r *reader) holdsNothing(c *contents, from source) {
	file := display(from.path)
	if r.Strict || from.path == stdinPath {
		c.refused = append(c.refused, fmt.Errorf("%s: holds no object; write one or leave the file out", file))
		return
	}
	c.pass(empty, file)
}

// isNone tells what passes for an object, and is none that an API server would get: an input of kustomize, or what a
// template makes the name of.
func isNone(file string, content map[string]any) bool {
	meta, _ := content["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return isKustomization(file, content) || strings.Contains(name, "{{") || strings.Contains(name, "${")
}

// reject notes a document, or an item of one with that content, that is no object; the error goes behind the place.
func (r *reader) reject(c *contents, doc document, content map[string]any, err error) {
	why := reasonFor(doc, content)
	switch why {
	case template:
		err = unrendered(doc)
	case kustomization:
		c.patches = append(c.patches, patchesOf(doc)...)
		err = errors.New(": a kustomization; use the output of kubectl kustomize")
	default:
	}
	switch {
	case r.Strict:
		c.refused = append(c.refused, fmt.Errorf("%s%w", doc.place, err))
	case why != meant:
		c.pass(why, doc.file)
	case len(c.broken) <= maxErrors: // more say no more
		c.broken = append(c.broken, fmt.Errorf("%s%w", doc.place, err))
	}
}

// split cuts a file at the "---" lines and between JSON objects that follow each other.
func split(data []byte) ([]document, error) {
	data = append(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), '\n')
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var documents []document
	rest, line := data, 1
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w; begin a document with a line that holds only ---", line+badSeparator(rest), err)
		}
		body := bytes.TrimRight(text, "\n")
		if at := bytes.Index(rest, body); at >= 0 {
			line += bytes.Count(rest[:at], []byte("\n"))
			rest = rest[at+len(body):]
		}
		documents = append(documents, splitJSON(document{text: string(text), line: line})...)
		line += bytes.Count(body, []byte("\n"))
	}
}

// badSeparator counts the lines before the one that the library refused without saying where.
func badSeparator(text []byte) int {
	number := 0
	for line := range bytes.Lines(text) {
		after, found := bytes.CutPrefix(line, []byte("---"))
		after = bytes.TrimSpace(after)
		if found && len(after) > 0 && after[0] != '#' {
			break
		}
		number++
	}
	return number
}

// splitJSON cuts objects that follow each other, as jq writes them. What is not JSON is left whole.
func splitJSON(doc document) []document {
	if !yaml.IsJSONBuffer([]byte(doc.text)) {
		return []document{doc}
	}
	decoder := json.NewDecoder(strings.NewReader(doc.text))
	var documents []document
	line, counted := doc.line, 0 // of the line breaks before counted
	lineOf := func(offset int) int {
		line += strings.Count(doc.text[counted:offset], "\n")
		counted = offset
		return line
	}
	for {
		start := int(decoder.InputOffset())
		var object json.RawMessage
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return documents
		case err != nil:
			return append(documents, document{text: doc.text[start:], line: lineOf(start)})
		}
		documents = append(documents, document{text: string(object), line: lineOf(int(decoder.InputOffset()) - len(object))})
	}
}
