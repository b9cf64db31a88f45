package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// answerTo makes the command a plugin of kubectl where it is called as one: usage texts then say what the user typed.
func answerTo(root *cobra.Command, args []string) {
	switch strings.TrimSuffix(filepath.Base(args[0]), ".exe") {
	case "kubectl-warmpool":
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl warmpool"}
		for _, cmd := range root.Commands() {
			cmd.Long, cmd.Example = asPlugin(cmd.Long), asPlugin(cmd.Example)
		}
	case "kubectl_complete-warmpool": // kubectl calls this to complete a plugin's arguments
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args[1:]...))
	}
}

// asPlugin puts kubectl before every call of warmpool in a text.
func asPlugin(text string) string {
	for _, before := range []string{"  ", "| ", "\""} {
		text = strings.ReplaceAll(text, before+"warmpool ", before+"kubectl warmpool ")
	}
	return text
}
