package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

type sizeOptions struct {
	surroundings
	pools  []string
	output string
}

func newSizeCommand() *cobra.Command {
	o := &sizeOptions{}
	cmd := &cobra.Command{
		Use:   "size",
		Short: "Show placeholder requests and CPA ratios that fit the pools' nodes",
		Long: `Size tells for each pool what its nodes offer beside their DaemonSets, and for both sizing modes which placeholder
to use, the largest Workspace that runs beside it, and the largest that can take its place. It adds ratios for the
Cluster Proportional Autoscaler (CPA) that do not run away. All quantities are exact.

The numbers are of the pool's nodes; where there are none, of its NodeClaims, of the nodes last seen, or of
sizing.allocatable in the configuration, in this order. The facts of the cluster come from a folder of manifests
(--cluster) or from a live cluster (--kubeconfig, --context).

Exit codes: 0, some pool was sized; 2, none was, or bad usage or input.`,
		Example: `  # All pools of the example cluster
  warmpool size --cluster manifests/examples/fine

  # One pool of a live cluster, for a program
  warmpool size --pool gpu --context prod -o json

  # A kustomize patch for the shipped placeholders, to be listed under patches in an overlay of manifests/base
  warmpool size --pool cpu --pool gpu --context prod -o patch >placeholder-size.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.pools, "pool", nil, "Name of a pool to size; may be repeated (default: all)")
	flags.StringVar(&o.configFile, "config", "", "File with the WarmPoolConfiguration (default: the one that the cluster holds)")
	flags.StringVar(&o.clusterDir, "cluster", "", "Folder or file of manifests that stands for the cluster")
	o.manifests.add(flags, "Namespace of objects in files that name none (default: default)")
	flags.StringVarP(&o.output, "output", "o", "table", "Output format: table, json, yaml or patch (for kustomize, by the pools' configured modes)")
	o.kube.add(flags)
	return cmd
}

func (o *sizeOptions) run(cmd *cobra.Command) error {
	printers := map[string]func(io.Writer, *sizeReport) error{
		"table": printSizes, "patch": printSizePatches,
		"json": func(out io.Writer, report *sizeReport) error { return printJSON(out, report) },
		"yaml": printSizesYAML,
	}
	printAll := printers[o.output]
	if printAll == nil {
		return fmt.Errorf("--output must be table, json, yaml or patch, not %q", o.output)
	}
	cfg, facts, err := o.read(cmd)
	if err != nil {
		return err
	}
	pools, err := o.selected(cfg)
	if err != nil {
		return err
	}
	report, err := reportSizes(cfg, facts, pools)
	if err != nil {
		return err
	}
	if o.output == "patch" {
		warnPatches(cmd.ErrOrStderr(), report)
	}
	if err := printAll(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	if !slices.ContainsFunc(report.Pools, func(p *poolReport) bool { return p.Missing == "" }) {
		return errors.New("no pool could be sized")
	}
	return nil
}

// selected are the pools that --pool names, else all, in the order of the configuration.
func (o *sizeOptions) selected(cfg *config.WarmPoolConfiguration) ([]*config.Pool, error) {
	var pools []*config.Pool
	var names []string
	for i := range cfg.Pools {
		names = append(names, cfg.Pools[i].Name)
		if len(o.pools) == 0 || slices.Contains(o.pools, cfg.Pools[i].Name) {
			pools = append(pools, &cfg.Pools[i])
		}
	}
	for _, name := range o.pools {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--pool %s: no such pool; the configuration has %q", name, names)
		}
	}
	return pools, nil
}

func printSizesYAML(out io.Writer, report *sizeReport) error {
	document, err := yaml.Marshal(report)
	if err != nil {
		return err
	}
	_, err = out.Write(document)
	return err
}

// reportSizes sizes the pools.
func reportSizes(cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot, pools []*config.Pool) (*sizeReport, error) {
	sizes := sizing.NewTracker(cfg).Update(facts)
	evaluator, err := policy.NewWithSizes(cfg, facts, sizes, time.Now())
	if err != nil {
		return nil, err
	}
	held, scalings := heldNodes(evaluator, facts), evaluator.Scalings()
	report := &sizeReport{namespace: cfg.Placeholders.Namespace}
	for _, pool := range pools {
		report.Pools = append(report.Pools, reportPool(evaluator, pool, sizes.Pool(pool.Name), held[pool.Name], scalings[pool.Name]))
	}
	return report, nil
}

// heldNodes are how many nodes placeholders hold, by pool.
func heldNodes(evaluator *policy.Evaluator, facts *cluster.Snapshot) map[string]int {
	held := map[string]int{}
	for _, d := range facts.Deployments.All() {
		if !evaluator.IsPlaceholder(d) {
			continue
		}
		if pool := evaluator.Placeholder(d, d.Namespace).Pool; pool != nil {
			held[pool.Config.Name] += int(d.Status.ReadyReplicas)
		}
	}
	return held
}
