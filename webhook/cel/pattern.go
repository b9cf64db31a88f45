package cel

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// regularExpression translates a glob of path.Match to RE2, the syntax of CEL. The error is path.ErrBadPattern.
func regularExpression(glob string) (string, error) {
	if _, err := path.Match(glob, ""); err != nil {
		return "", fmt.Errorf("%q: %w", glob, err)
	}
	var b strings.Builder
	inClass := false
	for i, characters := 0, []rune(glob); i < len(characters); i++ {
		switch c := characters[i]; {
		case c == '\\':
			i++
			b.WriteString(regexp.QuoteMeta(string(characters[i])))
		case inClass:
			inClass = c != ']'
			b.WriteString(classCharacter(c))
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
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return b.String(), nil
}

// classCharacter keeps what means the same in both syntaxes: the range and the end.
func classCharacter(c rune) string {
	if c == '-' || c == ']' {
		return string(c)
	}
	if c == '^' || c == '[' {
		return `\` + string(c)
	}
	return regexp.QuoteMeta(string(c))
}
