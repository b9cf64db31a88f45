package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// marks are the places of an object where the template has something else than the object. In the object they stand as
// strings that no manifest has.
type marks struct{ all []mark }

type mark struct {
	text string
	// lines tells that the text stands for whole lines.
	lines bool
}

var (
	markInLine = regexp.MustCompile(`mark-(\d+)-kram`)
	markAsLine = regexp.MustCompile(`(?m)^( *)(?:- )?mark-(\d+)-kram(?:: "")?$`)
)

// value is a mark for what an expression gives: a whole value, or a part of a string.
func (m *marks) value(expression string) string { return m.put(mark{text: "{{ " + expression + " }}"}) }

// block is a mark for whole lines, as an element of a list or a key of a map. Each line gets the indentation of the mark.
func (m *marks) block(lines string) string {
	return m.put(mark{text: strings.TrimSuffix(lines, "\n"), lines: true})
}

func (m *marks) put(one mark) string {
	m.all = append(m.all, one)
	return fmt.Sprintf("mark-%d-kram", len(m.all)-1)
}

// text is the object with what the marks stand for. What looks like a template in the object itself stays as it is.
func (m *marks) text(object any) (string, error) {
	document, err := yaml.Marshal(object)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(document), "{{", `{{ "{{" }}`)
	text = markAsLine.ReplaceAllStringFunc(text, func(line string) string {
		parts := markAsLine.FindStringSubmatch(line)
		if one := m.at(parts[2]); one.lines {
			return parts[1] + strings.ReplaceAll(one.text, "\n", "\n"+parts[1])
		}
		return line
	})
	return markInLine.ReplaceAllStringFunc(text, func(s string) string { return m.at(markInLine.FindStringSubmatch(s)[1]).text }), nil
}

func (m *marks) at(number string) mark {
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(m.all) {
		return mark{}
	}
	return m.all[i]
}

// inCase puts lines under a condition.
func inCase(condition, lines string) string {
	if condition == "" {
		return lines
	}
	return fmt.Sprintf("{{- if %s }}\n%s{{- end }}\n", condition, lines)
}
