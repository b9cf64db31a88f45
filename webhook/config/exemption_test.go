package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/config"
)

func TestExemptionActiveAt(t *testing.T) {
	lastDay := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		until string
		at    time.Time
		want  bool
	}{
		"permanently":                {"", lastDay.AddDate(500, 0, 0), true},
		"before":                     {"2027-01-31", lastDay.AddDate(-1, 0, 0), true},
		"the last day begins":        {"2027-01-31", lastDay, true},
		"the last day ends":          {"2027-01-31", lastDay.AddDate(0, 0, 1).Add(-1), true},
		"the next day":               {"2027-01-31", lastDay.AddDate(0, 0, 1), false},
		"the same moment, elsewhere": {"2027-01-31", lastDay.AddDate(0, 0, 1).Add(-1).In(time.FixedZone("east", 14*3600)), true},
		"the same date, elsewhere":   {"2027-01-31", time.Date(2027, 1, 31, 23, 0, 0, 0, time.FixedZone("west", -2*3600)), false},
		"no date":                    {"soon", lastDay, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, config.Exemption{Until: test.until}.ActiveAt(test.at))
		})
	}
}

func TestExpiry(t *testing.T) {
	c := &config.WarmPoolConfiguration{Exemptions: []config.Exemption{
		{Name: "march", Until: "2027-03-31"},
		{Name: "ever"},
		{Name: "january", Until: "2027-01-31"},
		{Name: "last-year", Until: "2026-12-31"},
	}}
	for _, test := range []struct {
		now     time.Time
		expired []string
		next    time.Time
	}{
		{time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), nil, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
		{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), []string{"last-year"}, time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)},
		{time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC), []string{"january", "last-year"}, time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)},
		{time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC), []string{"march", "january", "last-year"}, time.Time{}},
	} {
		var expired []string
		for _, e := range c.Expired(test.now) {
			expired = append(expired, e.Name)
		}
		assert.Equal(t, test.expired, expired, test.now)
		next, ok := c.NextExpiry(test.now)
		assert.Equal(t, test.next, next, test.now)
		assert.Equal(t, !test.next.IsZero(), ok, test.now)
	}
}
