package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"warmpool.sh/webhook/policy"
)

// ruleRow is a rule as rules -o json prints it.
type ruleRow struct {
	ID            string `json:"id"`
	AppliesTo     string `json:"appliesTo"`
	DefaultAction string `json:"defaultAction"`
	Severity      string `json:"severity"`
	Fills         string `json:"fills,omitempty"`
	Summary       string `json:"summary"`
	Fix           string `json:"fix"`
}

func newRulesCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the rules: what must hold, and what happens if it does not",
		Example: `  # The rules with their default actions
  warmpool rules

  # For a program
  warmpool rules -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printRules(cmd.OutOrStdout(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "Output format: table, json or markdown")
	return cmd
}

func printRules(out io.Writer, format string) error {
	rows := ruleRows()
	switch format {
	case "table":
		return printTable(out, rows)
	case "json":
		return printJSON(out, rows)
	case "markdown":
		_, err := io.WriteString(out, rulesMarkdown(rows))
		return err
	default:
		return fmt.Errorf("--output must be table, json or markdown, not %q", format)
	}
}

func printTable(out io.Writer, rows []ruleRow) error {
	lines := []string{"ID\tAPPLIES TO\tACTION\tSEVERITY\tSUMMARY\n"}
	for _, r := range rows {
		lines = append(lines, strings.Join([]string{r.ID, r.AppliesTo, r.DefaultAction, r.Severity, r.Summary}, "\t")+"\n")
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if _, err := io.WriteString(w, strings.Join(lines, "")); err != nil {
		return err
	}
	return w.Flush()
}

func ruleRows() []ruleRow {
	var rows []ruleRow
	for _, rule := range policy.Rules() {
		rows = append(rows, ruleRow{
			ID: rule.ID, AppliesTo: string(rule.Subject), DefaultAction: string(rule.Action), Severity: string(rule.Severity),
			Fills: rule.Fills, Summary: rule.Summary, Fix: rule.Fix,
		})
	}
	return rows
}

func rulesMarkdown(rows []ruleRow) string {
	var b strings.Builder
	b.WriteString("| Rule | Applies to | What must hold | warmpool fills | Action | Severity | Fix |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		cells := []string{"`" + r.ID + "`", r.AppliesTo, r.Summary, r.Fills, r.DefaultAction, r.Severity, r.Fix}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
