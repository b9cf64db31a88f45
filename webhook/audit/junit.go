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
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// printJUnit writes a suite for each rule: a failure for each of its findings, a skipped test for each that could not be
// verified, or one test that passed.
func printJUnit(out io.Writer, r *Report) error {
	report := junitSuites{Name: "warmpool audit"}
	for _, rule := range r.Rules {
		suite := junitSuite{Name: rule.ID}
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Rule == rule.ID {
				suite.add(f)
			}
		}
		if len(suite.Cases) == 0 {
			suite.Cases = []junitCase{{Name: rule.Summary, Class: rule.ID}}
		}
		suite.Tests = len(suite.Cases)
		report.Tests += suite.Tests
		report.Failures += suite.Failures
		report.Skipped += suite.Skipped
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

func (s *junitSuite) add(f *Finding) {
	test := failed(f)
	if f.unverified() {
		test.Failure, test.Skipped = nil, &junitSkipped{Message: f.Message}
		s.Skipped++
	} else {
		s.Failures++
	}
	s.Cases = append(s.Cases, test)
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
