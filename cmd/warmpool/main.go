// Command warmpool keeps warm pools of Kubernetes nodes working: as admission webhooks in the cluster (serve), and on
// the command line over manifests or a live cluster: what the webhooks would answer (admit), what is wrong (audit), which
// placeholders fit the nodes (size) and what is checked (rules).
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/component-base/cli"
)

// Exit codes of all commands.
const (
	exitFindings = 1 // the command ran and found something: denied, say
	exitUsage    = 2 // bad usage or input, or the command could not run
)

// exitError carries an exit code; without one an error is bad usage or input.
type exitError struct {
	error
	code int
}

func main() {
	root := newCommand(os.Stdin, os.Stdout, os.Stderr)
	answerTo(root, os.Args)
	err := cli.RunNoErrOutput(root)
	if err == nil {
		return
	}
	code := exitUsage
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		code = exit.code
	}
	if text := err.Error(); text != "" {
		_, _ = fmt.Fprintln(newQuoted(os.Stderr), "error: "+text)
	}
	os.Exit(code)
}
