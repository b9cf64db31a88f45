// Package policy holds the rules: what must be true of placeholder Deployments and Workspace pods, why, and how to
// fix it. It is pure: a rule is a function of objects, the cluster's Snapshot and the configuration.
//
// The engine is rule.go, finding.go, report.go, evaluator.go, check.go, object.go and audit.go. One rule is one file, with
// its test data in testdata/<rule-id>/ and one row in the table of rules.go. The table's order is the order of findings and
// of the documentation. What several rules go by stands in files named after it: taints.go, images.go, nodepools.go and so on.
package policy
