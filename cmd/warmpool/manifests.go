package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"warmpool.sh/webhook/cluster/manifest"
)

// manifestFlags say how files are read that stand for a cluster or a part of one.
type manifestFlags struct {
	namespace string
	ignore    []string
	strict    bool
}

func (f *manifestFlags) add(flags *pflag.FlagSet, namespaceUsage string) {
	flags.StringVarP(&f.namespace, "namespace", "n", "", namespaceUsage)
	flags.StringArrayVar(&f.ignore, "ignore", nil, "Leave files and folders out of folders: a glob of their name (values*.yaml), or with a slash of their path from the folder (charts/*/templates); may be repeated")
	flags.BoolVar(&f.strict, "strict", false, "Refuse files that hold no Kubernetes object, unrendered templates, and second definitions of an object")
}

func (f *manifestFlags) load(paths []string, stdin io.Reader, part bool) *manifest.Reading {
	return manifest.Load(paths, stdin, manifest.Options{Namespace: f.namespace, Ignore: f.ignore, Strict: f.strict, Part: part})
}

// loadWhole reads files as a whole cluster, for answers that rest on all its facts: an object that cannot be read is an error.
func (f *manifestFlags) loadWhole(path string) (*manifest.Reading, error) {
	reading := f.load([]string{path}, nil, false)
	if err := reading.Err(); err != nil {
		return nil, fmt.Errorf("read --cluster: %w", err)
	}
	if len(reading.Objects) == 0 {
		return nil, errors.Join(fmt.Errorf("read --cluster: no Kubernetes object in %s", path), noted(reading.Notes))
	}
	return reading, nil
}

// noted makes an error of notes; nil of none.
func noted(notes []string) error {
	var errs []error
	for _, note := range notes {
		errs = append(errs, errors.New(note))
	}
	return errors.Join(errs...)
}

// printNotes says on standard error what a report does not hold.
func printNotes(cmd *cobra.Command, notes []string) {
	for _, note := range notes {
		cmd.PrintErrln("Note: " + note)
	}
}
