// Command promql reads a JSON array of PromQL expressions from standard input and writes a JSON array with what each one
// names: metrics, and the labels that it selects, groups or joins by. It fails on the first expression that Prometheus would
// refuse. It has a module of its own, so that Prometheus is no dependency of warmpool.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// names are the metrics of an expression and the labels that go with each.
type names struct {
	// Expression as it was given.
	Expression string `json:"expression"`
	// Metrics has each metric's labels in its selectors; {__name__=~…} has no metric and is refused.
	Metrics map[string][]string `json:"metrics"`
	// Grouping are the labels of by, without, on, ignoring and group_left.
	Grouping []string `json:"grouping"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var expressions []string
	if err := json.NewDecoder(in).Decode(&expressions); err != nil {
		return fmt.Errorf("read a JSON array of expressions: %w", err)
	}
	found := make([]names, 0, len(expressions))
	for _, expression := range expressions {
		n, err := namesOf(expression)
		if err != nil {
			return fmt.Errorf("%s: %w", expression, err)
		}
		found = append(found, n)
	}
	return json.NewEncoder(out).Encode(found)
}

func namesOf(expression string) (names, error) {
	n := names{Expression: expression, Metrics: map[string][]string{}, Grouping: []string{}}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return n, err
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			metric := ""
			var selected []string
			for _, matcher := range node.LabelMatchers {
				if matcher.Name != labels.MetricName {
					selected = append(selected, matcher.Name)
				} else if matcher.Type == labels.MatchEqual {
					metric = matcher.Value
				}
			}
			if metric == "" {
				err = fmt.Errorf("name one metric in %s", node)
			}
			n.Metrics[metric] = append(n.Metrics[metric], selected...)
		case *parser.AggregateExpr:
			n.Grouping = append(n.Grouping, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				n.Grouping = append(n.Grouping, node.VectorMatching.MatchingLabels...)
				n.Grouping = append(n.Grouping, node.VectorMatching.Include...)
			}
		}
		return nil
	})
	return n, err
}
