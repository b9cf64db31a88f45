package cel

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// regularExpression translates a glob of path.Match to RE2, the syntax of CEL. The error names a glob that either does not
// take.
func regularExpression(glob string) (string, error) {
	if _, err := path.Match(glob, ""); err != nil {
		return "", fmt.Errorf("%q: %w", glob, err)
	}
	b, inClass := &strings.Builder{}, false
	for i, characters := 0, []rune(glob); i < len(characters); i++ {
		switch c := characters[i]; {
		case c == '\\':
			i++
			b.WriteString(literal(characters[i]))
		case inClass && (c == ']' || c == '-'):
			inClass = c == '-'
			b.WriteRune(c)
		case inClass:
			b.WriteString(literal(c))
		case c == '[':
			inClass = true
			b.WriteByte('[')
			if characters[i+1] == '^' {
				i++
				b.WriteByte('^')
			}
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		default:
			b.WriteString(literal(c))
		}
	}
	if _, err := regexp.Compile(b.String()); err != nil {
		return "", fmt.Errorf("%q cannot be said as a regular expression: %w", glob, err)
	}
	return b.String(), nil
}

// literal is a character that stands for itself, in a class too.
func literal(c rune) string {
	if strings.ContainsRune(`-^[]\`, c) {
		return `\` + string(c)
	}
	return regexp.QuoteMeta(string(c))
}
