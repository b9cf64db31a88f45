package demand_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/demand"
)

func TestSettingsOf(t *testing.T) {
	assert.Equal(t, &demand.Settings{}, demand.SettingsOf(nil))
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	size := &config.Size{
		Objective: 0.9, Min: new(int32(0)), Max: 7, TimeZone: "Europe/Berlin",
		Events: []config.Event{
			{Name: "class", At: "2027-01-12T09:00", For: &metav1.Duration{Duration: 30 * time.Minute}, Starts: new(int32(200))},
			{Name: "Christmas", From: "2026-12-24", To: "2027-01-02", Starts: new(int32(0))},
		},
	}
	assert.Equal(t, &demand.Settings{Objective: 0.9, Max: 7, Zone: berlin, Events: []demand.Event{
		{Name: "class", From: time.Date(2027, 1, 12, 9, 0, 0, 0, berlin), To: time.Date(2027, 1, 12, 9, 30, 0, 0, berlin), Starts: 200},
		{Name: "Christmas", From: time.Date(2026, 12, 24, 0, 0, 0, 0, berlin), To: time.Date(2027, 1, 3, 0, 0, 0, 0, berlin)},
	}}, demand.SettingsOf(size))
	size = &config.Size{Cost: &config.Cost{WaitingHour: 60, NodeHour: 5}, Min: new(int32(1)), TimeZone: "UTC"}
	assert.Equal(t, &demand.Settings{WaitingHour: 60, IdleHour: 5, Min: 1, Zone: time.UTC}, demand.SettingsOf(size))
}
