package audit

import (
	"encoding/json"
	"io"
)

func printJSON(out io.Writer, r *Report) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
