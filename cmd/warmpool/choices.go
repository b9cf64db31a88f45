package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/spelling"
)

// known reports the first value of an option that is none of the names, with the one that was probably meant.
func known(option string, values, names []string) error {
	for _, value := range values {
		if slices.Contains(names, value) {
			continue
		}
		if name, ok := nearest(value, names); ok {
			return fmt.Errorf("--%s: no %q; did you mean %q?", option, value, name)
		}
		if len(names) > 10 {
			return fmt.Errorf("--%s: no %q; see warmpool rules", option, value)
		}
		return fmt.Errorf("--%s: no %q; use one of %s", option, value, strings.Join(names, ", "))
	}
	return nil
}

// nearest is the name with the fewest edits, the first of several, if they are few.
func nearest(value string, names []string) (nearest string, ok bool) {
	most := (len(value) - 1) / 3 // none for three letters: gpu is not cpu
	for _, name := range names {
		if edits, few := spelling.Edits(strings.ToLower(value), name, most); few {
			nearest, ok, most = name, true, edits-1
		}
	}
	return nearest, ok
}

// completeFlags has shells complete the values of options that take one of a few.
func completeFlags(root *cobra.Command) {
	outputs := map[string][]string{
		"audit": audit.Formats(), "admit": {"yaml", "patch", "json"}, "plan": planOutputs, "size": {"table", "json", "yaml", "patch"}, "rules": {"table", "json", "markdown"},
	}
	for _, cmd := range root.Commands() {
		for flag, values := range map[string][]string{
			"output": outputs[cmd.Name()], "severity": severities, "fail-on": {"error", "warning", failOnNothing}, "rule": policy.IDs(), "placement": placements,
		} {
			complete(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return values, cobra.ShellCompDirectiveNoFileComp
			})
		}
		complete(cmd, "pool", completePools)
	}
}

// complete sets the completion of a flag that the command has.
func complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if cmd.Flags().Lookup(flag) == nil {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // set twice
	}
}

// completePools names the pools of --config or of the manifests that the line names; a cluster is not asked.
func completePools(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	paths, _ := cmd.Flags().GetStringSlice("filename")
	for _, flag := range []string{"cluster", "config"} {
		if path, err := cmd.Flags().GetString(flag); err == nil && path != "" {
			paths = []string{path}
		}
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths))) // cobra parses the line twice
	if len(paths) == 0 || slices.Contains(paths, "-") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	reading := manifest.Load(paths, nil, manifest.Options{}) // what is broken offers nothing
	facts, objects := reading.Snapshot, reading.Objects
	var cfg *config.WarmPoolConfiguration
	if data, err := configIn(objects); err == nil && len(data) > 0 {
		cfg, _ = config.Load(data, policy.IDs())
	}
	if cfg == nil {
		cfg, _ = audit.Infer(facts)
	}
	var names []string
	for i := range cfg.Pools {
		names = append(names, cfg.Pools[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
