// Package quantity keeps texts away from the parser of Kubernetes quantities on which it works for minutes, such as
// 1e-999999999.
package quantity

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/api/resource"
)

const maxLength = 40

var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3}`)

var errLongExponent = errors.New("a quantity's exponent must have at most two digits, because others take minutes to parse; " +
	"write it as 500m or 16Gi, for example")

// Check returns an error for a text that would keep resource.ParseQuantity busy: one of more than 40 bytes, or with an
// exponent of more than two digits. It does not say whether the text is a quantity. The error does not repeat the text.
func Check(text string) error {
	if len(text) > maxLength {
		return fmt.Errorf("a quantity must have at most %d characters, not %d, because long ones take minutes to parse; "+
			"write it as 500m or 16Gi, for example", maxLength, len(text))
	}
	if longExponent.MatchString(text) {
		return errLongExponent
	}
	return nil
}

// Unmarshalers are for json.WithUnmarshalers: quantities that do not pass Check are errors, others are decoded as always.
var Unmarshalers = json.UnmarshalFunc(func(data []byte, q *resource.Quantity) error {
	if err := Check(strings.Trim(string(data), `"`)); err != nil {
		return err
	}
	return q.UnmarshalJSON(data)
})

// Suspect reports whether a JSON document may hold a quantity that does not pass Check. Most documents do not, and need
// not be decoded with Unmarshalers, which cost time at every value.
func Suspect(document []byte) bool {
	return hasLongExponent(document, 'e') || hasLongExponent(document, 'E') || hasLongNumber(document)
}

func hasLongExponent(document []byte, letter byte) bool {
	for rest := document; ; {
		i := bytes.IndexByte(rest, letter)
		if i < 0 {
			return false
		}
		if i > 0 && isOfNumber(rest[i-1]) && startsLongExponent(rest[i+1:]) {
			return true
		}
		rest = rest[i+1:]
	}
}

// hasLongNumber looks at every byte of which one must be in a run of more than maxLength.
func hasLongNumber(document []byte) bool {
	for i := maxLength; i < len(document); i += maxLength {
		if !isOfNumber(document[i]) {
			continue
		}
		first, last := i, i
		for first > 0 && isOfNumber(document[first-1]) {
			first--
		}
		for last+1 < len(document) && isOfNumber(document[last+1]) {
			last++
		}
		if last-first+1 > maxLength {
			return true
		}
	}
	return false
}

func isOfNumber(c byte) bool { return isDigit(c) || c == '.' }

func startsLongExponent(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	return len(text) > 2 && isDigit(text[0]) && isDigit(text[1]) && isDigit(text[2])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
