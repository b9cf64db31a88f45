package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/poolview"
	"warmpool.sh/webhook/version"
)

type auditOptions struct {
	surroundings
	files      []string
	stdinName  string
	output     string
	failOn     string
	pools      []string
	rules      []string
	severities []string
	everywhere bool
	complete   bool
	// unconfigured lets there be no pools: init proposes some.
	unconfigured bool
}

// severities as options name them, worst first.
var severities = []string{string(policy.SeverityError), string(policy.SeverityWarning), string(policy.SeverityInfo)}

// failOnNothing is the value of --fail-on for audits that only report.
const failOnNothing = "none"

func newAuditCommand() *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check a live cluster, or manifests, against every rule",
		Long: `Audit asks every rule about the warm pools of a cluster: placeholders, Workspace pods, and what is around them.
Without -f the cluster is the one that kubectl would use. With -f it is a folder of manifests, or files; nothing is
contacted then. Nothing is changed anywhere.

Files are taken as a part of a cluster: what is not among them may be elsewhere, unless --complete is given. Files without
Kubernetes objects and unrendered templates are passed over, and named; --strict refuses them. Objects without a namespace are
in that of -n, else in default.

The configuration is --config, else the one that the cluster or folder holds, else pools are inferred from placeholders
and NodePools, and the report says so.

Exit codes: 0, nothing at or above --fail-on; 1, findings, or an object that rules go by and that cannot be read; 2, a path that
cannot be read or holds no object, or bad usage.`,
		Example: `  # The cluster of the current context
  warmpool audit

  # Manifests before they are applied, as a rendered kustomization
  kubectl kustomize . | warmpool audit -f - --stdin-name kustomization.yaml

  # A chart, whose objects name no namespace
  helm template . | warmpool audit -f - -n overprovisioning -A

  # A page with a view of each pool
  warmpool audit -o html >audit.html

  # For code scanning, and for a program
  warmpool audit -f manifests -o sarif >warmpool.sarif
  warmpool audit --context prod --pool gpu --fail-on warning -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "File, folder or - (standard input) to audit instead of a live cluster; may be repeated")
	flags.StringVar(&o.stdinName, "stdin-name", "", "With -f -: the file that findings in standard input are reported in, such as the kustomization.yaml that was rendered")
	flags.StringVar(&o.configFile, "config", "", "File with the WarmPoolConfiguration (default: the one that the cluster holds, else pools are inferred)")
	flags.StringVarP(&o.output, "output", "o", "table", "Output format: "+strings.Join(audit.Formats(), ", "))
	flags.StringVar(&o.failOn, "fail-on", severities[0], "Exit with 1 for findings of this severity or worse: error, warning or none")
	flags.StringSliceVar(&o.pools, "pool", nil, "Show only findings about this pool; may be repeated")
	flags.StringSliceVar(&o.rules, "rule", nil, "Show only findings of this rule; may be repeated")
	flags.StringSliceVar(&o.severities, "severity", nil, "Show only findings of this severity: error, warning or info; may be repeated")
	o.manifests.add(flags, "Show only findings about objects of this namespace; objects in files that name none are in it (default: default). With -A all findings are shown")
	flags.BoolVar(&o.complete, "complete", false, "The files of -f are the whole cluster: what is not among them does not exist")
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Show findings about all namespaces and about objects without one (default)")
	o.kube.add(flags)
	return cmd
}

func (o *auditOptions) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	found, err := o.readAudited(cmd)
	if err != nil {
		return err
	}
	warnExpired(found.config, cmd)
	if err := o.checkPools(found.config); err != nil {
		return err
	}
	evaluator, err := policy.New(found.config, found.facts, time.Now())
	if err != nil {
		return err
	}
	var findings []policy.Finding
	objects := 0
	if !found.idle {
		findings, objects = evaluator.Audit()
	}
	report := audit.New(findings, objects, found.place)
	report.Time, report.Version = time.Now(), version.Get()
	report.Notes, report.Incomplete = found.notes, found.broken != nil || found.refused != nil
	if report.Incomplete {
		report.Notes = append([]string{"not everything could be read: see the error"}, report.Notes...)
	}
	report.NoteUnreadable(found.unreadable)
	if o.output == "html" {
		report.Subject, report.Configuration = o.subject(), found.origin
		report.Views = slices.DeleteFunc(poolview.Of(evaluator), func(p *poolview.View) bool {
			return len(o.pools) > 0 && !slices.Contains(o.pools, p.Pool.Name)
		})
	}
	report.Rules = slices.DeleteFunc(report.Rules, func(rule *policy.Rule) bool {
		return found.config.Rules[rule.ID] == config.Off || len(o.rules) > 0 && !slices.Contains(o.rules, rule.ID)
	})
	report.Filter(o.shows)
	if o.output != "table" && o.output != "html" {
		printNotes(cmd, report.Notes)
	}
	if err := o.print(cmd, report); err != nil {
		return err
	}
	return o.verdict(cmd, report, found)
}

func (o *auditOptions) print(cmd *cobra.Command, report *audit.Report) error {
	out := cmd.OutOrStdout()
	screen := screenOf(out)
	if q, ok := out.(*quoted); ok && screen.Color && o.output == "table" {
		out = q.out // the table quotes what it colours
	}
	return report.Print(out, o.output, screen)
}

// verdict makes the exit code. A named file that cannot be read is bad input; an object that cannot be read may hide any
// fault, and counts as one.
func (o *auditOptions) verdict(cmd *cobra.Command, report *audit.Report, found *audited) error {
	err := errors.Join(found.refused, found.broken)
	if err != nil {
		err = fmt.Errorf("these were not audited:\n%w", err)
	}
	switch {
	case found.refused != nil:
		return err
	case o.failOn == failOnNothing && err != nil:
		cmd.PrintErrln("Warning: " + err.Error())
		return nil
	case o.failOn == failOnNothing:
		return nil
	case err != nil:
		return &exitError{err, exitFindings}
	}
	if n := report.AtLeast(policy.Severity(o.failOn)); n > 0 {
		worse := ""
		if o.failOn != severities[0] {
			worse = " or worse"
		}
		return &exitError{fmt.Errorf("findings of severity %s%s: %d", o.failOn, worse, n), exitFindings}
	}
	return nil
}

// subject names what is audited.
func (o *auditOptions) subject() string {
	if len(o.files) > 0 {
		return "Manifests: " + strings.Join(o.files, ", ")
	}
	return cmp.Or(o.kube.context, "The cluster of the current context")
}

// checkSource reports a cluster that is named twice.
func (o *auditOptions) checkSource() error {
	if len(o.files) > 0 && o.kube.given() {
		return errors.New("give -f or --kubeconfig/--context, not both")
	}
	return nil
}

// check reports options that name what is not there.
func (o *auditOptions) check() error {
	if err := o.checkSource(); err != nil {
		return err
	}
	if o.stdinName != "" && !slices.Contains(o.files, "-") {
		return errors.New("--stdin-name: standard input is not read; give -f - too")
	}
	return cmp.Or(
		known("output", []string{o.output}, audit.Formats()),
		known("fail-on", []string{o.failOn}, []string{"error", "warning", failOnNothing}),
		known("severity", o.severities, severities),
		known("rule", o.rules, policy.IDs()),
	)
}

func (o *auditOptions) checkPools(cfg *config.WarmPoolConfiguration) error {
	var names []string
	for i := range cfg.Pools {
		names = append(names, cfg.Pools[i].Name)
	}
	return known("pool", o.pools, names)
}

// shows tells whether the filters let a finding through.
func (o *auditOptions) shows(f *audit.Finding) bool {
	takes := func(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	return takes(o.pools, f.Pool) && takes(o.rules, f.Rule) && takes(o.severities, string(f.Severity)) &&
		(o.manifests.namespace == "" || o.everywhere || o.manifests.namespace == f.Namespace)
}

// screenOf is what the table is printed on: colours go to terminals alone, and not where NO_COLOR asks for none.
func screenOf(out io.Writer) audit.Screen {
	if q, ok := out.(*quoted); ok {
		out = q.out
	}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return audit.Screen{}
	}
	screen := audit.Screen{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		screen.Width = width
	}
	return screen
}
