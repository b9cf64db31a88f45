package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"warmpool.sh/webhook/chart"
	"warmpool.sh/webhook/config"
)

type initOptions struct {
	audit  auditOptions
	output string
	image  string
}

func newInitCommand() *cobra.Command {
	o := &initOptions{audit: auditOptions{unconfigured: true, complete: true}}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write the values of the Helm chart for a cluster: its pools, placeholders and their sizes",
		Long: `Init looks at a cluster and writes the values file of the Helm chart in manifests/chart: a pool for each NodePool that
Workspaces of the WorkspaceTemplates may use, with placeholders that fit its nodes, and bounds that its limits allow.
Placeholders and a configuration that are there already are taken over. A comment says why each choice was made, and
"# decide:" what init cannot know.

Without -f the cluster is the one that kubectl would use. With -f it is a folder of manifests, or files; nothing is
contacted then. Nothing is asked, and nothing is changed anywhere.

Exit codes: 0, the file can be used; 2, no pool can be proposed, or bad usage or input.`,
		Example: `  # Install warmpool in the cluster of the current context
  warmpool init --image registry.example/warmpool:v0.1.0 >values.yaml
  helm install warmpool manifests/chart -f values.yaml

  # For the example cluster, as a kustomization that has kustomize render the chart
  warmpool init -f manifests/examples/fine -o kustomize`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.audit.files, "filename", "f", nil, "File, folder or - (standard input) to look at instead of a live cluster; may be repeated")
	flags.StringVar(&o.audit.configFile, "config", "", "File with the WarmPoolConfiguration to start from (default: the one that the cluster holds, else none)")
	flags.StringVar(&o.image, "image", "", "Image of warmpool (default: the chart's)")
	flags.StringVarP(&o.output, "output", "o", "values", "Output format: values (of the chart) or kustomize")
	o.audit.manifests.add(flags, "Namespace of objects in files that name none (default: default)")
	o.audit.kube.add(flags)
	return cmd
}

func (o *initOptions) run(cmd *cobra.Command) error {
	if o.output != "values" && o.output != "kustomize" {
		return fmt.Errorf("--output must be values or kustomize, not %q", o.output)
	}
	if err := o.audit.checkSource(); err != nil {
		return err
	}
	found, err := o.audit.readAudited(cmd)
	if err != nil {
		return err
	}
	var cfg *config.WarmPoolConfiguration
	if !found.inferred {
		cfg = found.config
	}
	proposal, err := chart.Propose(found.facts, cfg, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", o.audit.subject(), err)
	}
	proposal.Values.Image = o.image
	for _, reason := range found.unreadable {
		proposal.Remarks = append(proposal.Remarks, chart.Decide+"this user may not read everything: "+reason)
	}
	for _, err := range []error{found.broken, found.refused} {
		if err != nil {
			proposal.Remarks = append(proposal.Remarks, chart.Decide+"not read: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	if o.image == "" {
		proposal.Remarks = append(proposal.Remarks, chart.Decide+"image: your registry's name for warmpool, or --image")
	}
	write, command := proposal.YAML, "helm install warmpool manifests/chart -f values.yaml"
	if proposal.TakesOver {
		command += " --take-ownership # and, with Helm 4, --force-conflicts"
	}
	if o.output == "kustomize" {
		write, command = proposal.Kustomization, "for a folder in manifests/overlays: kubectl kustomize --enable-helm DIR | kubectl apply --server-side -f -"
	}
	text, err := write("Written by warmpool init for: "+o.audit.subject()+". Read what is marked decide, then:", command)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
