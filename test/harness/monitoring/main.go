// Command monitoring reads rendered manifests from standard input, decodes their ServiceMonitors and PrometheusRules
// strictly, and writes a JSON array with every PromQL expression of the alerts and of the Grafana dashboards among them,
// and what it names. It fails on what Prometheus would refuse. It has a module of its own, so that Prometheus is no
// dependency of warmpool.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// query is one expression and what it names.
type query struct {
	// Place is the alert or the dashboard's panel.
	Place string `json:"place"`
	// Expression in PromQL.
	Expression string `json:"expression"`
	// Metrics has the labels that each metric is selected by.
	Metrics map[string][]string `json:"metrics"`
	// Grouping are the labels of by, without, on, ignoring and group_left.
	Grouping []string `json:"grouping"`
	// Texts are the alert's annotations and the panel's legend, which may name labels too.
	Texts []string `json:"texts"`
}

// dashboard is the part of a Grafana dashboard that has queries.
type dashboard struct {
	Panels []struct {
		Title   string `json:"title"`
		Targets []struct {
			Expr         string `json:"expr"`
			LegendFormat string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	all := []query{}
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(in)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read manifests: %w", err)
		}
		queries, err := queriesOf(document)
		if err != nil {
			return err
		}
		all = append(all, queries...)
	}
	for i := range all {
		if err := all[i].parse(); err != nil {
			return fmt.Errorf("%s: %s: %w", all[i].Place, all[i].Expression, err)
		}
	}
	return json.NewEncoder(out).Encode(all)
}

func queriesOf(document []byte) ([]query, error) {
	var meta metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &meta); err != nil {
		return nil, fmt.Errorf("decode a manifest: %w", err)
	}
	place := meta.Kind + " " + meta.Name
	var queries []query
	var err error
	switch meta.Kind {
	case "ServiceMonitor":
		err = yaml.UnmarshalStrict(document, &monitoringv1.ServiceMonitor{})
	case "PrometheusRule":
		queries, err = ofRules(place, document)
	case "ConfigMap":
		queries, err = ofDashboards(place, document)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return queries, nil
}

func ofRules(place string, document []byte) ([]query, error) {
	var rules monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(document, &rules); err != nil {
		return nil, err
	}
	var queries []query
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			q := query{Place: place + ", alert " + rule.Alert, Expression: rule.Expr.String()}
			for _, key := range slices.Sorted(maps.Keys(rule.Annotations)) {
				q.Texts = append(q.Texts, rule.Annotations[key])
			}
			queries = append(queries, q)
		}
	}
	return queries, nil
}

func ofDashboards(place string, document []byte) ([]query, error) {
	var configMap corev1.ConfigMap
	if err := yaml.UnmarshalStrict(document, &configMap); err != nil {
		return nil, err
	}
	var queries []query
	for name, content := range configMap.Data {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		var d dashboard
		if err := json.Unmarshal([]byte(content), &d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				queries = append(queries, query{
					Place:      place + ", panel " + panel.Title,
					Expression: strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"), // Grafana's own variable
					Texts:      []string{target.LegendFormat},
				})
			}
		}
	}
	return queries, nil
}

func (q *query) parse() error {
	q.Metrics, q.Grouping = map[string][]string{}, []string{}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.Expression)
	if err != nil {
		return err
	}
	var errs []error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			errs = append(errs, q.selector(node))
		case *parser.AggregateExpr:
			q.Grouping = append(q.Grouping, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				q.Grouping = append(q.Grouping, node.VectorMatching.MatchingLabels...)
				q.Grouping = append(q.Grouping, node.VectorMatching.Include...)
			}
		}
		return nil
	})
	return errors.Join(errs...)
}

func (q *query) selector(selector *parser.VectorSelector) error {
	metric := ""
	var selected []string
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != labels.MetricName {
			selected = append(selected, matcher.Name)
		} else if matcher.Type == labels.MatchEqual {
			metric = matcher.Value
		}
	}
	if metric == "" {
		return fmt.Errorf("%s names no metric", selector)
	}
	q.Metrics[metric] = append(q.Metrics[metric], selected...)
	return nil
}
