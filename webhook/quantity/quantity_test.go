package quantity_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/quantity"
)

const (
	exponent = "a quantity's exponent must have at most two digits, because others take minutes to parse; write it as 500m or 16Gi, for example"
	length   = "a quantity must have at most 40 characters, not 41, because long ones take minutes to parse; write it as 500m or 16Gi, for example"
)

func TestCheck(t *testing.T) {
	for _, text := range []string{
		"0", "1", "-1", "500m", "16Gi", "1.5", "1e3", "1E3", "1E", "9E", "1e+12", "1e-99", "", "no quantity", strings.Repeat("9", 40),
	} {
		assert.NoError(t, quantity.Check(text), text)
	}
	for _, text := range []string{"1e-999999999", "1e999999999", "1E+100", "1e-100", "1e001", ".1e-123456789"} {
		assert.EqualError(t, quantity.Check(text), exponent, text)
	}
	for _, text := range []string{strings.Repeat("9", 41), strings.Repeat("9", 37) + "e-99"} {
		assert.EqualError(t, quantity.Check(text), length, text)
	}
}

func TestUnmarshalers(t *testing.T) {
	var list corev1.ResourceList
	decode := func(text string) error {
		list = nil
		return json.Unmarshal([]byte(text), &list, json.WithUnmarshalers(quantity.Unmarshalers))
	}
	require.NoError(t, decode(`{"cpu":"500m","memory":16,"x":1e3,"y":null}`))
	assert.Equal(t, corev1.ResourceList{
		"cpu": resource.MustParse("500m"), "memory": resource.MustParse("16"), "x": resource.MustParse("1e3"), "y": {},
	}, list)
	assert.ErrorIs(t, decode(`{"cpu":"lots"}`), resource.ErrFormatWrong)
	assert.ErrorContains(t, decode(`{"cpu":"1e-999999999"}`), exponent)
	assert.ErrorContains(t, decode(`{"cpu":1e-999999999}`), exponent, "a number is as long")
	assert.ErrorContains(t, decode(`{"cpu":"`+strings.Repeat("9", 41)+`"}`), length)
}

// What Check refuses, Suspect must see in a document.
func TestSuspect(t *testing.T) {
	long := strings.Repeat("1", 41)
	for text, want := range map[string]bool{
		`"1e-999999999"`: true, `"1E999"`: true, `1e+100`: true, `".5e123"`: true, `"` + long + `"`: true, long: true, `"1.` + long + `"`: true,
		`"1e12"`: false, `"16Gi"`: false, `"0.5"`: false, `"1e-9"`: false, `"` + long[1:] + `"`: false,
		`"7d8a2c57-0f6e-4c53-9a35-2c1b7f0a9d11"`: false, `""`: false,
	} {
		assert.Equal(t, want, quantity.Suspect([]byte(`{"a":`+text+`}`)), text)
		if quantity.Check(strings.Trim(text, `"`)) != nil {
			assert.True(t, quantity.Suspect([]byte(text)), text)
		}
	}
}
