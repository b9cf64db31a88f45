package policy

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cpa"
)

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders, and their ConfigMaps.
// Requires: flags that CPA starts with, and parameters that it takes: one of linear or ladder, no number below 0, a ratio
// above 0, max not below min. What it would create from --default-params is what the ConfigMap says.
// Why: with parameters that it does not take CPA writes a line into its log, and the placeholders stay as many as they are.
var cpaConfig = &Rule{
	ID:       "cpa-config",
	Summary:  "CPA takes its flags and parameters: one of linear or ladder, min ≤ max, a ratio above 0; --default-params say the same as the ConfigMap.",
	Fix:      "Correct the parameters; until then CPA leaves the replicas as they are.",
	Subject:  ProportionalScaler,
	Severity: SeverityError,
	audit: func(a *Audit) {
		a.eachCPA(func(_ *Audit, s scaler) {
			judgeFlags(s)
			judgeParams(s)
			judgeDefaults(s)
		})
	},
}

// judgeFlags reports flags with which CPA ends at once, or never counts a node. Those of --target are cpa-target's.
func judgeFlags(s scaler) {
	add := func(flag, message, fix string) {
		s.invalid(s.Args, "--"+flag+"="+clip(s.Flags[flag]), "%s", message).withFix("%s", fix)
	}
	if s.Flags["configmap"] == "" {
		add("configmap", "CPA does not start without the name of its ConfigMap", "Add --configmap=NAME to CPA's arguments.")
	}
	if s.Works == "" {
		add("namespace", "CPA does not start without a namespace: neither --namespace nor the variable MY_POD_NAMESPACE is set",
			"Add --namespace="+s.Namespace+" to CPA's arguments.")
	}
	if text, given := s.Flags["poll-period-seconds"]; given && !strings.Contains(text, "$(") {
		if seconds, err := strconv.ParseInt(text, 0, 64); err != nil || seconds < 1 {
			add("poll-period-seconds", "CPA does not start: it wants a number of seconds, 1 or more", "Leave --poll-period-seconds out for 10.")
		}
	}
	if text, given := s.Flags["default-params"]; given {
		if _, err := cpa.DefaultData(text); err != nil {
			add("default-params", "CPA does not start: "+err.Error(), "Correct the JSON of --default-params, or leave it out.")
		}
	}
	if _, err := labels.Parse(s.Flags["nodelabels"]); err != nil {
		add("nodelabels", "CPA can list no nodes and never scales: "+clip(err.Error()), "Write it as KEY=VALUE, several with commas.")
	}
}

func judgeParams(s scaler) {
	switch {
	case s.Unknown != "":
		s.notVerified(s.Args, "CPA's parameters: %s", s.Unknown)
	case s.Fault != "":
		f := s.wrong("invalid params, the placeholder count is frozen: %s", s.Fault)
		if s.ConfigMap == nil && !strings.HasPrefix(s.Value, "--default-params") {
			f.withFix("Create the ConfigMap, or correct --configmap and --namespace.")
		}
	case s.Params != nil:
		for _, oddity := range s.Oddities {
			s.wrong("%s", oddity).milder(SeverityWarning).withFix("Correct it, or leave it out.")
		}
	}
}

// judgeDefaults compares --default-params with the ConfigMap, by what they mean.
func judgeDefaults(s scaler) {
	text, given := s.Flags["default-params"]
	data, err := cpa.DefaultData(text)
	if !given || err != nil || s.ConfigMap == nil || s.Params == nil {
		return
	}
	message := "differs from ConfigMap " + s.params().key() + ", which wins until it is deleted"
	defaults, _, fault := cpa.Parse(data)
	switch {
	case fault != "":
		message = "CPA would not take them if the ConfigMap were deleted: " + fault
	case defaults.Equal(s.Params):
		return
	}
	s.invalid(s.Args, "--default-params="+clip(text), "%s; the ConfigMap says %s", message, s.Params).milder(SeverityWarning).
		withFix("Make --default-params equal to the ConfigMap, or leave it out.")
}
