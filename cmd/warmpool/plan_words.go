package main

import (
	"cmp"
	"fmt"
	"time"
)

// zone is where hours are counted.
func (p *poolPlan) zone() string { return cmp.Or(p.TimeZone, "UTC") }

// basis says what was judged.
func (p *poolPlan) basis() string {
	if p.Simulated {
		return fmt.Sprintf("Judged on %d starts of %d weeks, simulated at the rates that are known.", p.Judged.Starts, weeksJudged)
	}
	return fmt.Sprintf("Judged on %d starts from %s to %s, which nothing was learned from.", p.Judged.Starts, p.Judged.From.Format(time.RFC3339), p.Judged.To.Format(time.RFC3339))
}

// promise is the objective in words.
func (p *poolPlan) promise() string {
	if p.Objective == 0 {
		return fmt.Sprintf("waiting at %g an hour, a node at %g", p.asked.WaitingHour, p.asked.IdleHour)
	}
	return fmt.Sprintf("objective %g %%", rounded(100*p.Objective, 2))
}

// detail says what was set.
func (p *policyPlan) detail() string {
	if p.Replicas != nil {
		return fmt.Sprintf("%d always", *p.Replicas)
	}
	return p.Detail
}

func (p *poolPlan) leadTime() time.Duration {
	return time.Duration(p.LeadTimeSeconds * float64(time.Second)).Round(time.Second)
}
