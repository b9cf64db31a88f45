// Package policy holds the rules: what must be true of placeholder Deployments and Workspace pods, why, and how to
// fix it. It is pure: a rule is a function of an object, the cluster's Snapshot and the configuration.
//
// One rule is one file with its test data in testdata/<rule-id>/ and one row in the table of rules.go. The table's
// order is the order of findings and of the documentation. An Evaluator joins the table with one configuration and
// one Snapshot; the webhook, the admit command and the audit all ask it.
package policy
