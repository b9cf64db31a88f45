package chart

import (
	"bytes"
	"strings"
)

// Kustomization has kustomize render the chart with the values, which are in it.
func (p *Proposal) Kustomization(heading ...string) ([]byte, error) {
	values, err := p.YAML()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, line := range heading {
		out.WriteString(comment(line) + "\n")
	}
	out.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nhelmGlobals: {chartHome: ../..}\nhelmCharts:\n" +
		"- name: chart\n  releaseName: warmpool\n  skipTests: true\n  valuesInline:\n")
	for line := range strings.Lines(string(values)) {
		out.WriteString("    " + line)
	}
	return out.Bytes(), nil
}
