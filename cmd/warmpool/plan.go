package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/demand"
)

type planOptions struct {
	surroundings
	history    []string
	epoch      string
	skipBad    bool
	leadTime   time.Duration
	places     int
	objective  float64
	least      int
	most       int
	nodePrice  float64
	learn      string
	output     string
	learnFirst time.Duration // 0: two thirds

	given func(flag string) bool
	// What only a cluster knows.
	asked            *demand.Settings
	consolidateAfter time.Duration
	scaler           *planScaler
	zone             *time.Location
}

func newPlanCommand() *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show how many placeholders a promise needs and what it costs, from the starts so far",
		Long: `Plan learns from a history of starts when Workspaces come, and shows for each pool how many placeholders to keep in each
hour of the week so that the objective's share of starts finds a warm place. It replays the rest of the history, from which it
has not learned, and compares: the best fixed number, CPA as it ships, two windows a day, and foresight of the rates (all with
the hits of demand, where they reach them).

A history is CSV with a header or JSON lines, with time (RFC 3339, or seconds from --epoch), pool and minutes of stay, of which
the last two may be missing; or one number of seconds a line. Lines that begin with # are comments. Hours of the week are in
UTC. A Workspace of which no stay is known keeps its node permanently; an empty node is taken to go at once.

Without --history, plan goes by what warmpool has counted: the ConfigMap warmpool-demand of a live cluster (--kubeconfig,
--context) or of a folder of manifests (--cluster). What the pools' size, nodes and autoscalers are comes from there too. It
holds the starts of each hour, not each start, so that what is judged is simulated: starts at those rates, by chance.

-o html is a page that needs no network and no scripts: what more or fewer hits cost under each policy, and the week. -o patch is
the size of each pool for the WarmPoolConfiguration, in which warmpool keeps what the hour asks for by itself.

Exit codes: 0, it was planned; 2, bad usage or input; the message names file, line and field.`,
		Example: `  # What 95 % costs, where a node takes six and a half minutes to get warm
  warmpool plan --history starts.csv --objective 0.95 --lead-time 6m30s --node-price 5.4

  # What the pools of a live cluster need, as a page
  warmpool plan --context prod -o html >plan.html

  # Judged on what comes after three weeks, for a program
  warmpool plan --history - --learn 21d -o json <starts.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { o.given = cmd.Flags().Changed; return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.history, "history", nil, "File with starts, or - (standard input); may be repeated")
	flags.StringVar(&o.epoch, "epoch", "", "Time (RFC 3339) from which seconds are counted (default: a Monday, 00:00 UTC)")
	flags.BoolVar(&o.skipBad, "skip-bad", false, "Count lines that cannot be read, and go on")
	flags.DurationVar(&o.leadTime, "lead-time", 390*time.Second, "How long a placeholder takes from its creation until its node is warm")
	flags.IntVar(&o.places, "places", 1, "How many Workspaces a warm node takes, the last one in its placeholder's place")
	flags.Float64Var(&o.objective, "objective", 0.95, "Share of starts that is to find a warm place")
	flags.IntVar(&o.least, "min", 0, "Least placeholders to keep; with 0 the pool goes cold where no one comes")
	flags.IntVar(&o.most, "max", 0, "Most placeholders to keep (default: no bound)")
	flags.Float64Var(&o.nodePrice, "node-price", 0, "Price of an hour of a node")
	flags.StringVar(&o.learn, "learn", "", "How long to learn before what comes after is judged, such as 21d (default: two thirds of the history)")
	flags.StringVar(&o.configFile, "config", "", "File with the WarmPoolConfiguration (default: the one that the cluster holds)")
	flags.StringVar(&o.clusterDir, "cluster", "", "Folder or file of manifests that stands for the cluster")
	o.manifests.add(flags, "Namespace of objects in files that name none (default: default)")
	o.kube.add(flags)
	flags.StringVarP(&o.output, "output", "o", "table", "Output format: "+strings.Join(planOutputs, ", "))
	return cmd
}

var planOutputs = []string{"table", "json", "yaml", "html", "patch"}

// mostPlaceholders bounds --min, --max and --places.
const mostPlaceholders = 1000

func (o *planOptions) run(cmd *cobra.Command) error {
	epoch, err := o.check()
	if err != nil {
		return err
	}
	o.zone = time.UTC
	h := &history{epoch: epoch, epochGiven: o.epoch != "", skipBad: o.skipBad}
	if len(o.history) == 0 {
		report, err := o.planCluster(cmd)
		if err != nil {
			return err
		}
		return printPlan(cmd.OutOrStdout(), o.output, report)
	}
	reading := newProgress("Reading")
	err = h.readAll(o.history, cmd.InOrStdin(), reading.next)
	reading.done()
	if err != nil {
		return err
	}
	if h.bad > 0 {
		cmd.PrintErrf("Warning: %d lines were skipped, the first of them: %v\n", h.bad, h.firstBad)
	}
	replaying := newProgress("Replaying")
	report, err := o.plan(h, replaying.next)
	replaying.done()
	if err != nil {
		return err
	}
	return printPlan(cmd.OutOrStdout(), o.output, report)
}

func printPlan(out io.Writer, format string, report *planReport) error {
	switch format {
	case "json":
		return printJSON(out, report)
	case "yaml":
		document, err := yaml.Marshal(report)
		if err != nil {
			return err
		}
		_, err = out.Write(document)
		return err
	case "html":
		return printPlanPage(out, report)
	case "patch":
		return printPlanPatch(out, report)
	default:
		return printPlanTable(out, report)
	}
}

// check reports options that cannot be, and reads those that are text.
func (o *planOptions) check() (epoch time.Time, err error) {
	epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) // a Monday
	if o.epoch != "" {
		if epoch, err = time.Parse(time.RFC3339, o.epoch); err != nil {
			return epoch, fmt.Errorf("--epoch: %q is no time such as 2026-01-05T00:00:00Z", o.epoch)
		}
	}
	if o.learnFirst, err = parseDays(o.learn); err != nil {
		return epoch, err
	}
	if len(o.history) > 0 && (o.kube.given() || o.clusterDir != "" || o.configFile != "") {
		return epoch, errors.New("give --history, or a cluster, not both")
	}
	if err := known("output", []string{o.output}, planOutputs); err != nil {
		return epoch, err
	}
	return epoch, o.checkNumbers()
}

func (o *planOptions) checkNumbers() error {
	within := func(name string, value, least, most float64) error {
		if value >= least && value <= most {
			return nil
		}
		return fmt.Errorf("--%s must be from %g to %g, not %g", name, least, most, value)
	}
	if !(o.objective > 0 && o.objective < 1) {
		return fmt.Errorf("--objective must be between 0 and 1, not %v", o.objective)
	}
	if o.most > 0 && o.most < o.least {
		return fmt.Errorf("--max must be --min (%d) or more, or 0 for no bound, not %d", o.least, o.most)
	}
	if o.leadTime < time.Second || o.leadTime > 24*time.Hour {
		return fmt.Errorf("--lead-time must be from 1s to 24h, not %s", o.leadTime)
	}
	return cmp.Or(
		within("places", float64(o.places), 1, mostPlaceholders),
		within("min", float64(o.least), 0, mostPlaceholders),
		within("max", float64(o.most), 0, mostPlaceholders),
		within("node-price", o.nodePrice, 0, 1e9),
	)
}

// parseDays reads a duration that may be in days.
func parseDays(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wrong := fmt.Errorf("--learn: %q is no time such as 21d or 36h", text)
	var length time.Duration
	if number, days := strings.CutSuffix(text, "d"); days {
		n, err := strconv.Atoi(number)
		if err != nil || n > 36500 {
			return 0, wrong
		}
		length = time.Duration(n) * 24 * time.Hour
	} else if d, err := time.ParseDuration(text); err == nil {
		length = d
	}
	if length <= 0 {
		return 0, wrong
	}
	return length, nil
}

// settings are those of a pool that keeps the promise.
func (o *planOptions) settings() *demand.Settings {
	most := o.most
	if most == 0 {
		most = mostPlaceholders
	}
	s := demand.Settings{Objective: o.objective}
	if o.asked != nil {
		s = *o.asked
	}
	s.Min, s.Max, s.Places, s.LeadTime, s.ConsolidateAfter, s.Zone = o.least, most, o.places, o.leadTime, o.consolidateAfter, o.zone
	return &s
}
