// Command browser opens HTML pages in headless Chromium, in light and dark and as wide as a phone and a desk, and writes a
// JSON array with what is wrong with them. It has a module of its own, so that a browser's driver is no dependency of
// warmpool. With -screenshots FOLDER it leaves pictures of what it saw; -chromium is the program to start.
package main

import (
	"context"
	_ "embed" // the checks that run in the page
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

//go:embed checks.js
var checks string

// mostTime bounds the whole run.
const mostTime = 5 * time.Minute

// problem is something that is wrong with a page as it was seen.
type problem struct {
	Page   string `json:"page"`
	Scheme string `json:"scheme"`
	Width  int64  `json:"width"`
	Check  string `json:"check"`
	Text   string `json:"text"`
}

func main() {
	screenshots := flag.String("screenshots", "", "folder for screenshots (default: none are made)")
	chromium := flag.String("chromium", "chromium", "Chromium, by name or path")
	flag.Parse()
	if err := run(*chromium, flag.Args(), *screenshots); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(chromium string, pages []string, screenshots string) error {
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium),
		chromedp.NoSandbox, // it opens our own files, also as root in a container
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("start %s: %w", chromium, err)
	}
	found := []problem{}
	for _, page := range pages {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 1280} {
				problems, err := look(ctx, problem{Page: page, Scheme: scheme, Width: width}, screenshots)
				if err != nil {
					return fmt.Errorf("look at %s, %s, %d px: %w", page, scheme, width, err)
				}
				found = append(found, problems...)
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// look opens a page in a tab of its own and checks it; seen says how.
func look(browser context.Context, seen problem, screenshots string) ([]problem, error) {
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	path, err := filepath.Abs(seen.Page)
	if err != nil {
		return nil, err
	}
	said, err := listen(ctx, "file://"+path)
	if err != nil {
		return nil, err
	}
	if err := dress(ctx, seen); err != nil {
		return nil, err
	}
	if err := chromedp.Do(ctx, chromedp.Navigate("file://"+path)); err != nil {
		return nil, err
	}
	wrong, err := chromedp.Run(ctx, chromedp.Evaluate[[]checked](checks))
	if err != nil {
		return nil, err
	}
	if seen.Scheme == "light" && seen.Width > 600 { // once: it takes long
		order, err := tabOrder(ctx)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, order...)
	}
	if screenshots != "" {
		if err := photograph(ctx, seen, screenshots); err != nil {
			return nil, err
		}
	}
	var problems []problem
	for _, w := range slices.Concat(wrong, said.all()) {
		p := seen
		p.Check, p.Text = w.Check, w.Text
		problems = append(problems, p)
	}
	return problems, nil
}

// dress makes the browser a phone or a desk, in light or dark.
func dress(ctx context.Context, seen problem) error {
	size := emulation.SetDeviceMetricsOverrideParams{Width: seen.Width, Height: 900, DeviceScaleFactor: 1, Mobile: seen.Width < 600}
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, size); err != nil {
		return err
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: seen.Scheme}}}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
	return err
}

func photograph(ctx context.Context, seen problem, folder string) error {
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()")); err != nil {
		return err
	}
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%d.png", strings.TrimSuffix(filepath.Base(seen.Page), ".html"), seen.Scheme, seen.Width)
	return os.WriteFile(filepath.Join(folder, name), picture, 0o600)
}
