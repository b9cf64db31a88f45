package main

import (
	"io"

	"github.com/spf13/cobra"
)

// newCommand is the whole command line over the given streams.
func newCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "warmpool",
		Short: "Warm pools for notebook Workspaces: placed, sized and checked at admission",
		Long: `warmpool places Workspace pods and placeholder Deployments in their warm pool and refuses placeholders that
cannot work: as admission webhooks in a cluster (serve), and for manifests on the command line (admit, size). It checks
whole clusters, live or as manifests (audit), and shows what a promise of warm starts costs (plan).

Under the name kubectl-warmpool on the PATH it is a plugin of kubectl: kubectl warmpool audit.`,
		Args: cobra.NoArgs,
		// With a run function, an unknown command is an error and not the help text.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(in)
	cmd.SetOut(newQuoted(out))
	cmd.SetErr(newQuoted(errOut))
	cmd.AddCommand(newServeCommand(), newInitCommand(), newAdmitCommand(), newAuditCommand(), newSizeCommand(), newPlanCommand(), newExportCommand(),
		newRulesCommand(), newVersionCommand())
	completeFlags(cmd)
	return cmd
}
