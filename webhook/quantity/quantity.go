// Package quantity keeps texts away from the parser of Kubernetes quantities on which it works for minutes, such as
// 1e-999999999.
package quantity

import (
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
