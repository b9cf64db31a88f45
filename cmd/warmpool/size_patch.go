package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The shipped placeholders: one Deployment a pool, with the container that holds the resources.
const (
	placeholderPrefix    = "spaces-placeholder-"
	placeholderContainer = "pause"
)

// printSizePatches prints a strategic merge patch for the shipped placeholder of each pool, by its configured mode.
func printSizePatches(out io.Writer, report *sizeReport) error {
	var documents []string
	for _, pool := range report.Pools {
		plan := pool.configured()
		if plan == nil || plan.Request == nil {
			continue
		}
		document, err := yaml.Marshal(sizePatch(report.namespace, pool.Name, plan.Request))
		if err != nil {
			return err
		}
		documents = append(documents, string(document))
	}
	if len(documents) == 0 {
		return errors.New("no patch: no pool has a placeholder that would do in its configured mode; see -o table")
	}
	_, err := io.WriteString(out, strings.Join(documents, "---\n"))
	return err
}

func sizePatch(namespace, pool string, request corev1.ResourceList) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": placeholderPrefix + pool, "namespace": namespace},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name":      placeholderContainer,
			"resources": map[string]any{"requests": request, "limits": request},
		}}}}},
	}
}

// warnPatches says which pools get no patch, and which get one for a mode that cannot work.
func warnPatches(errOut io.Writer, report *sizeReport) {
	for _, pool := range report.Pools {
		plan := pool.configured()
		switch {
		case plan == nil:
			_, _ = fmt.Fprintf(errOut, "Warning: no patch for pool %s: %s\n", pool.Name, pool.Missing)
		case plan.Request == nil:
			_, _ = fmt.Fprintf(errOut, "Warning: no patch for pool %s: %s\n", pool.Name, strings.Join(plan.Faults, "; "))
		case !plan.Works:
			_, _ = fmt.Fprintf(errOut, "Warning: pool %s: mode %s cannot work: %s\n", pool.Name, plan.Mode, strings.Join(plan.Faults, "; "))
		}
	}
}
