package audit

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
)

// The elements of a JUnit report that CI systems read.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// printJUnit writes a suite for each rule: a failure for each of its findings, or one test that passed.
func printJUnit(out io.Writer, r *Report) error {
	report := junitSuites{Name: "warmpool audit"}
	for _, rule := range r.Rules {
		suite := junitSuite{Name: rule.ID}
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Rule == rule.ID {
				suite.Cases = append(suite.Cases, failed(f))
			}
		}
		suite.Failures = len(suite.Cases)
		if suite.Failures == 0 {
			suite.Cases = []junitCase{{Name: rule.Summary, Class: rule.ID}}
		}
		suite.Tests = len(suite.Cases)
		report.Tests, report.Failures = report.Tests+suite.Tests, report.Failures+suite.Failures
		report.Suites = append(report.Suites, suite)
	}
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}

func failed(f *Finding) junitCase {
	text := fmt.Sprintf("%s: %s\nFix: %s\n", f.Field, f.Message, f.Fix)
	if f.Field == "" {
		text = fmt.Sprintf("%s\nFix: %s\n", f.Message, f.Fix)
	}
	if f.Place.File != "" {
		text += "At: " + f.Place.text() + "\n"
	}
	return junitCase{
		Name: cmp.Or(f.object(), "pool "+f.Pool) + " " + f.Field, Class: f.Rule, File: f.Place.File, Line: f.Place.Line,
		Failure: &junitFailure{Message: f.Message, Type: string(f.Severity), Text: text},
	}
}
