package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"warmpool.sh/webhook/cel"
	"warmpool.sh/webhook/controller/policysync"
	"warmpool.sh/webhook/policy"
)

func newExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print what does some of warmpool's work without it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExportCELCommand())
	return cmd
}

func newExportCELCommand() *cobra.Command {
	o := &surroundings{}
	cmd := &cobra.Command{
		Use:   "cel",
		Short: "Print the placement of Workspace pods, and rules of placeholders, as policies of the API server",
		Long: `Export cel prints a MutatingAdmissionPolicy with its binding and parameters, for Kubernetes 1.36 and later. It places
Workspace pods as the webhook does, inside the API server: it cannot be down while that is up. Leave the webhook of pods
out, or keep both: the second finds nothing left to do.

For placeholders it prints a ValidatingAdmissionPolicy with those rules that need the Deployment alone, where they deny.

The policy is the same for every cluster. The pools are in a ConfigMap, its parameters: export again when the
configuration, a NodePool or the images of a template change. The facts of the cluster come from a folder of manifests
(--cluster) or from a live cluster (--kubeconfig, --context).

Exit codes: 0, printed; 2, bad usage or input.`,
		Example: `  # For a live cluster
  warmpool export cel --context prod | kubectl --context prod apply --server-side -f -

  # For the example cluster
  warmpool export cel --cluster manifests/examples/fine`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.exportCEL(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.configFile, "config", "", "File with the WarmPoolConfiguration (default: the one that the cluster holds)")
	flags.StringVar(&o.clusterDir, "cluster", "", "Folder or file of manifests that stands for the cluster")
	o.kube.add(flags)
	return cmd
}

func (s *surroundings) exportCEL(cmd *cobra.Command) error {
	cfg, facts, err := s.read(cmd)
	if err != nil {
		return err
	}
	warnExpired(cfg, cmd)
	evaluator, err := policy.New(cfg, facts, time.Now())
	if err != nil {
		return err
	}
	placement, err := cel.NewPlacement(evaluator, ownNamespace)
	if err != nil {
		return fmt.Errorf("write the placement as CEL: %w", err)
	}
	for _, gap := range placement.Gaps {
		cmd.PrintErrf("Warning: %s\n", gap)
	}
	if err := s.checkServed(); err != nil {
		cmd.PrintErrf("Warning: %v\n", err)
	}
	text, err := placement.YAML()
	if err != nil {
		return err
	}
	placeholders, err := cel.NewPlaceholders(evaluator, ownNamespace)
	if err != nil {
		return err
	}
	if placeholders != nil {
		rules, err := placeholders.YAML()
		if err != nil {
			return err
		}
		text = append(append(text, "---\n"...), rules...)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// checkServed tells what is wrong where a live cluster does not take the policy.
func (s *surroundings) checkServed() error {
	if !s.kube.given() {
		return nil
	}
	restConfig, err := s.kube.restConfig()
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(restConfig) // not that of s.kube, which goes by files of earlier hours
	if err != nil {
		return err
	}
	if err := policysync.Served(client); err != nil {
		return fmt.Errorf("cluster %s: %w", restConfig.Host, err)
	}
	return nil
}
