// Command kustomize renders a folder as older kubectls do: go.mod has the kustomize of kubectl 1.30, go-kubectl-1.32.mod that
// of 1.32, which know less of replacements than the one of warmpool's tests.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), os.Args[1])
	if err == nil {
		var yaml []byte
		if yaml, err = built.AsYaml(); err == nil {
			_, err = os.Stdout.Write(yaml)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
