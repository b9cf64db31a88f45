package audit

import (
	"io"

	"sigs.k8s.io/yaml"
)

func printYAML(out io.Writer, r *Report) error {
	document, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	_, err = out.Write(document)
	return err
}
