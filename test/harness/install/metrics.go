package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Metrics is the text of the metrics at a URL, such as Warmpool.MetricsURL; anything but 200 is an error.
func Metrics(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %.200s", url, response.Status, text)
	}
	return string(text), nil
}

// Metric is the sum of the samples of a metric whose labels contain all parts; found reports whether there is one.
func Metric(ctx context.Context, url, name string, parts ...string) (sum float64, found bool, err error) {
	text, err := Metrics(ctx, url)
	if err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		at := strings.LastIndexByte(rest, ' ')
		if !ok || at < 0 || rest[0] != '{' && rest[0] != ' ' || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(rest[:at], part) }) {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(rest[at:], &value); err != nil {
			return 0, false, fmt.Errorf("read %q: %w", line, err)
		}
		sum, found = sum+value, true
	}
	return sum, found, nil
}
