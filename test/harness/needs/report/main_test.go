package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReport(t *testing.T) {
	assert.Equal(t, "No test was skipped.\n", report(""))
	assert.Equal(t, `Skipped:
  chromium: install it
    test/integration/auditpage: TestFaultsAreFound, TestPages
  flag: with -long only
    test/e2e/scenarios: TestScenarios/zero
    test/proof/day: TestSoak
`, report("flag\twith -long only\ttest/e2e/scenarios\tTestScenarios/zero\n"+
		"chromium\tinstall it\ttest/integration/auditpage\tTestPages\n"+
		"flag\twith -long only\ttest/proof/day\tTestSoak\n"+
		"chromium\tinstall it\ttest/integration/auditpage\tTestFaultsAreFound\n"+
		"chromium\tinstall it\ttest/integration/auditpage\tTestPages\n"+
		"a line that was cut off"))
}
