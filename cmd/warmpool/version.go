package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"warmpool.sh/webhook/version"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "warmpool %s (commit %s, %s, %s/%s)\n",
				version.Get(), cmp.Or(version.Commit(), "not recorded"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
