package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/config"
)

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders, and their ConfigMaps.
// Requires: flags that CPA starts with, and parameters that it takes: one of linear or ladder, no number below 0, a ratio
// above 0, max not below min. What it would create from --default-params is what the ConfigMap says.
// Why: with parameters that it does not take CPA writes a line into its log, and the placeholders stay as many as they are.
var cpaConfig = &Rule{
	ID:        "cpa-config",
	Summary:   "CPA takes its flags and parameters: one of linear or ladder, min ≤ max, a ratio above 0; --default-params say the same as the ConfigMap.",
	Fix:       "Correct the parameters; until then CPA leaves the replicas as they are.",
	Subject:   ProportionalScaler,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    func(a *Audit) []Finding { return a.eachAutoscaler(checkCPAConfig) },
}

func checkCPAConfig(s *autoscaler) []Finding {
	findings := s.startFaults()
	p := s.params
	switch {
	case p.unknown != "":
		findings = append(findings, notVerified(s.args, "CPA's parameters: "+p.unknown))
	case p.fault != "":
		f := s.invalid("invalid params, the placeholder count is frozen: " + p.fault)
		if p.object.Kind == "Deployment" && !strings.HasPrefix(p.value, "--default-params") {
			f = f.withFix("Create the ConfigMap, or correct --configmap and --namespace.")
		}
		findings = append(findings, f)
	case p.autoscalerParams != nil:
		for _, oddity := range p.oddities {
			findings = append(findings, s.invalid(oddity).milder(SeverityWarning).withFix("Correct it, or leave it out."))
		}
	}
	return append(findings, s.differentDefaults()...)
}

// startFaults are flags with which CPA ends at once, or never counts a node. Those of --target are cpa-target's.
func (s *autoscaler) startFaults() []Finding {
	var findings []Finding
	add := func(flag, message, fix string) {
		findings = append(findings, invalid(s.args, "--"+flag+"="+clip(s.flags[flag]), message).withFix(fix))
	}
	if s.flags["configmap"] == "" {
		add("configmap", "CPA does not start without the name of its ConfigMap", "Add --configmap=NAME to CPA's arguments.")
	}
	if s.namespace == "" {
		add("namespace", "CPA does not start without a namespace: neither --namespace nor the variable MY_POD_NAMESPACE is set",
			"Add --namespace="+s.Namespace+" to CPA's arguments.")
	}
	if text, given := s.flags["poll-period-seconds"]; given && !strings.Contains(text, "$(") {
		if seconds, err := strconv.ParseInt(text, 0, 64); err != nil || seconds < 1 {
			add("poll-period-seconds", "CPA does not start: it wants a number of seconds, 1 or more", "Leave --poll-period-seconds out for 10.")
		}
	}
	if text, given := s.flags["default-params"]; given {
		if _, err := defaultData(text); err != nil {
			add("default-params", "CPA does not start: "+jsonFault(err), "Correct the JSON of --default-params, or leave it out.")
		}
	}
	if _, err := labels.Parse(s.flags["nodelabels"]); err != nil {
		add("nodelabels", "CPA can list no nodes and never scales: "+clip(err.Error()), "Write it as KEY=VALUE, several with commas.")
	}
	return findings
}

// differentDefaults compares --default-params with the ConfigMap, by what they mean.
func (s *autoscaler) differentDefaults() []Finding {
	text, given := s.flags["default-params"]
	data, err := defaultData(text)
	if !given || err != nil || s.params.object.Kind != "ConfigMap" || s.params.autoscalerParams == nil {
		return nil
	}
	message := "differs from ConfigMap " + s.params.object.Namespace + "/" + s.params.object.Name + ", which wins until it is deleted"
	defaults, _, fault := parseParams(data)
	switch {
	case fault != "":
		message = "CPA would not take them if the ConfigMap were deleted: " + fault
	case reflect.DeepEqual(defaults.withoutOddities(), s.params.withoutOddities()):
		return nil
	}
	f := invalid(s.args, "--default-params="+clip(text), message+"; the ConfigMap says "+s.params.String())
	return []Finding{f.milder(SeverityWarning).withFix("Make --default-params equal to the ConfigMap, or leave it out.")}
}

func (p *autoscalerParams) withoutOddities() autoscalerParams {
	plain := *p
	plain.oddities = nil
	return plain
}

// String writes the parameters of either mode as they stand in a ConfigMap.
func (p *autoscalerParams) String() string {
	mode, value := "linear", any(p.Linear)
	if p.Ladder != nil {
		mode, value = "ladder", map[string]any{"coresToReplicas": p.Ladder.Cores, "nodesToReplicas": p.Ladder.Nodes}
	}
	text, err := json.Marshal(value)
	if err != nil { // numbers and booleans only
		return mode
	}
	return fmt.Sprintf("%s %s", mode, clip(string(text)))
}
