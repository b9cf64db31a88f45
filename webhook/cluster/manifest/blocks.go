package manifest

import (
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
)

// block is a value of a document and where it stands.
type block struct {
	value any
	// name is its key in a mapping; line, of the document from 1, is where the key or the item begins.
	name string
	line int
	// parts are the members of a mapping or the items of a sequence, where they are wanted.
	parts []block
	// text is what only YAML's parser can read: the lines of this member or item alone, or a whole document. node is what
	// the parser makes of it, once somebody asks.
	text string
	node *yaml.Node
}

// blocks reads YAML as kubectl writes it, many times faster than YAML's parser: mappings and sequences by their
// indentation, and scalars that can mean one thing only. Every other value goes to YAML's parser by itself, and a document
// whose structure is not certain is not ok: it goes there as a whole.
type blocks struct {
	rest   string // what follows the line
	line   int    // its number, from 1
	indent int    // of the line; -1 after the last one
	text   string // of the line, without indentation
	parts  bool   // whether blocks keep their parts
}

// readBlocks reads a document that is a mapping.
func readBlocks(text string, parts bool) (root block, ok bool) {
	p := &blocks{rest: text, parts: parts}
	p.next()
	line := p.line
	root, ok = p.mapping(p.indent)
	root.line = line
	return root, ok && p.indent < 0
}

// next goes to the next line that is neither empty nor a comment.
func (p *blocks) next() {
	for p.rest != "" {
		line, rest, _ := strings.Cut(p.rest, "\n")
		p.rest, p.line = rest, p.line+1
		p.text = strings.TrimLeft(line, " ")
		p.indent = len(line) - len(p.text)
		if p.text != "" && (p.text[0] != '#' || !printable(p.text)) {
			return
		}
	}
	p.indent, p.text = -1, ""
}

func (p *blocks) mapping(indent int) (b block, ok bool) {
	content := map[string]any{}
	for p.indent == indent {
		name, rest, ok := cutKey(p.text)
		if !ok {
			return block{}, false
		}
		member, ok := p.member(indent, rest)
		if !ok {
			return block{}, false
		}
		content[name] = member.value
		if p.parts {
			member.name = name
			b.parts = append(b.parts, member)
		}
	}
	b.value = content
	return b, p.indent < indent
}

func (p *blocks) sequence(indent int) (b block, ok bool) {
	content := []any{}
	for p.indent == indent && strings.HasPrefix(p.text, "- ") {
		item, ok := p.item(indent)
		if !ok {
			return block{}, false
		}
		content = append(content, item.value)
		if p.parts {
			b.parts = append(b.parts, item)
		}
	}
	b.value = content
	return b, p.indent <= indent
}

// member reads the value of a mapping's key, whose line goes on with rest.
func (p *blocks) member(indent int, rest string) (b block, ok bool) {
	if rest != "" {
		return p.scalar(indent, rest)
	}
	key := *p
	p.next()
	_, _, isMapping := cutKey(p.text)
	switch isSequence := strings.HasPrefix(p.text, "- "); {
	case isSequence && p.indent >= indent:
		b, ok = p.sequence(p.indent)
	case p.indent <= indent:
		ok = true
	case isMapping:
		b, ok = p.mapping(p.indent)
	default:
		*p = key
		return p.other(indent)
	}
	b.line = key.line
	return b, ok
}

func (p *blocks) item(indent int) (b block, ok bool) {
	rest := strings.Trim(p.text[1:], " ")
	if _, _, ok := cutKey(rest); !ok {
		return p.scalar(indent, rest)
	}
	line := p.line
	// A mapping goes on below its first key, not below the dash.
	text := strings.TrimLeft(p.text[1:], " ")
	p.indent, p.text = indent+len(p.text)-len(text), text
	b, ok = p.mapping(p.indent)
	b.line = line
	return b, ok
}

// scalar reads a value that ends with its line.
func (p *blocks) scalar(indent int, text string) (b block, ok bool) {
	value, ok := plain(text)
	if !ok {
		return p.other(indent)
	}
	first := *p
	if p.next(); p.indent > indent {
		*p = first
		return p.other(indent)
	}
	return block{value: value, line: first.line}, true
}

// other has YAML's parser read the member or item of this line, with all lines that are further in.
func (p *blocks) other(indent int) (b block, ok bool) {
	end := 0
	line := p.line
	for end < len(p.rest) {
		next, _, _ := strings.Cut(p.rest[end:], "\n")
		text := strings.TrimLeft(next, " ")
		if text != "" && len(next)-len(text) <= indent {
			break
		}
		end = min(end+len(next)+1, len(p.rest))
		p.line++
	}
	text := strings.Repeat(" ", indent) + p.text + "\n" + p.rest[:end]
	p.rest = p.rest[end:]
	p.next()
	value, ok := parseOne(text)
	return block{value: value, line: line, text: text}, ok
}

// parseOne reads a text that holds one member of a mapping, or one item of a sequence, and gives its value.
func parseOne(text string) (value any, ok bool) {
	isItem := strings.HasPrefix(strings.TrimLeft(text, " "), "- ")
	if isItem {
		text = "items:\n" + text // only below a MapSlice are all mappings such
	}
	var parsed goyaml.MapSlice
	if err := goyaml.Unmarshal([]byte(text), &parsed); err != nil || len(parsed) != 1 {
		return nil, false
	}
	value = parsed[0].Value
	if isItem {
		items, isList := value.([]any)
		if !isList || len(items) != 1 {
			return nil, false
		}
		value = items[0]
	}
	return asJSON(value)
}

// maxKey is what is certainly short enough for YAML's parser, which takes keys of 1024 characters on one line.
const maxKey = 512

// cutKey cuts a line behind the key of a mapping.
func cutKey(text string) (name, rest string, ok bool) {
	key, rest, found := strings.Cut(text, ": ")
	if !found {
		if key, found = strings.CutSuffix(strings.TrimRight(text, " "), ":"); !found {
			return "", "", false
		}
	}
	if len(key) > maxKey {
		return "", "", false
	}
	value, certain := plain(key)
	name, ok = value.(string)
	return name, strings.Trim(rest, " "), ok && certain
}

// plain reads a scalar, or an empty collection, that can mean one thing only. Not ok are all others.
func plain(text string) (value any, ok bool) {
	if value, ok := word(text); ok {
		return value, true
	}
	if text == "" || !printable(text) {
		return nil, false
	}
	switch first := text[0]; {
	case first == '"' || first == '\'':
		return quoted(text)
	case first == '-' || '0' <= first && first <= '9':
		return numeral(text)
	case strings.IndexByte("/_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", first) >= 0:
		return text, !keyword(text) && oneScalar(text)
	default:
		return nil, false
	}
}

func word(text string) (value any, ok bool) {
	switch text {
	case "null":
		return nil, true
	case "true", "false":
		return text == "true", true
	case "{}":
		return map[string]any{}, true
	case "[]":
		return []any{}, true
	default:
		return nil, false
	}
}

// quoted reads a string in which nothing is escaped.
func quoted(text string) (value any, ok bool) {
	inner := text[1:]
	if end := strings.IndexAny(inner, `'"\`); end < 0 || end != len(inner)-1 || inner[end] != text[0] {
		return nil, false
	}
	return inner[:len(inner)-1], true
}

// numeral reads an integer as everybody writes it, or a string that begins as one and ends with the unit of a quantity,
// as no number of YAML does.
func numeral(text string) (value any, ok bool) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		return nil, false
	}
	if strings.Trim(digits, "0123456789") == "" {
		if len(digits) > 18 || digits[0] == '0' && text != "0" {
			return nil, false
		}
		number, err := strconv.ParseInt(text, 10, 64)
		return number, err == nil
	}
	return text, strings.ContainsRune("mkMGTPi", rune(text[len(text)-1])) && oneScalar(text)
}

// keyword tells whether YAML takes a word for a boolean or null.
func keyword(text string) bool {
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	default:
		return false
	}
}

// oneScalar tells whether a text without quotes is no mapping, and has no comment behind it.
func oneScalar(text string) bool {
	return !strings.HasSuffix(text, ":") && !strings.HasSuffix(text, " ") && !strings.Contains(text, ": ") && !strings.Contains(text, " #")
}

// printable tells whether a text is of ASCII's printable characters, none of which breaks a line.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
