package placement

import (
	"encoding/json"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// Patch collects the JSON patch operations of one object, in the order in which they apply.
type Patch []jsonpatch.Operation

// Add appends an "add" operation: it sets the member, or inserts before the element, that the pointer names.
// The parent must exist in the document. value must not be changed afterwards.
func (p *Patch) Add(pointer string, value any) {
	*p = append(*p, jsonpatch.NewOperation("add", pointer, value))
}

// Remove appends a "remove" operation.
func (p *Patch) Remove(pointer string) {
	*p = append(*p, jsonpatch.NewOperation("remove", pointer, nil))
}

// JSON encodes the patch, in one pass: an Operation that is marshalled by itself is encoded twice.
func (p Patch) JSON() ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	operations := make([]operation, len(p))
	for i := range p {
		operations[i] = operation{p[i].Operation, p[i].Path, p[i].Value}
	}
	return json.Marshal(operations)
}

// Pointer joins JSON pointer (RFC 6901) tokens to a base, escaping "~" and "/".
func Pointer(base string, tokens ...string) string {
	var b strings.Builder
	b.WriteString(base)
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(pointerEscaper.Replace(token))
	}
	return b.String()
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// Index joins an array index to a pointer.
func Index(base string, i int) string { return base + "/" + strconv.Itoa(i) }
