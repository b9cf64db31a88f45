package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReport(t *testing.T) {
	assert.Equal(t, "No test was skipped.\n", report(""))
	assert.Equal(t, `Skipped:
  chromium: install it
    test/auditpage: TestFaultsAreFound, TestPages
  flag: with -long only
    test/day: TestSoak
    test/scenarios: TestScenarios/zero
`, report("flag\twith -long only\ttest/scenarios\tTestScenarios/zero\n"+
		"chromium\tinstall it\ttest/auditpage\tTestPages\n"+
		"flag\twith -long only\ttest/day\tTestSoak\n"+
		"chromium\tinstall it\ttest/auditpage\tTestFaultsAreFound\n"+
		"chromium\tinstall it\ttest/auditpage\tTestPages\n"+
		"a line that was cut off"))
}
