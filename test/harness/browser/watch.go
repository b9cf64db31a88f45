package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// checked is what a check found.
type checked struct {
	Check string `json:"check"`
	Text  string `json:"text"`
}

// talk is what a page says on the console, and asks the network for.
type talk struct {
	mu   sync.Mutex
	said []checked
}

func (t *talk) add(check, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, checked{check, text})
}

func (t *talk) all() []checked {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said
}

// listen notes what the page at the address says from now on.
func listen(ctx context.Context, address string) (*talk, error) {
	t := &talk{}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.add("console", e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			t.add("console", string(e.Type))
		case *log.EventEntryAdded:
			t.add("console", e.Entry.Text)
		case *network.EventRequestWillBeSent:
			url, _, _ := strings.Cut(e.Request.URL, "#")
			if url != address && !strings.HasPrefix(url, "data:") && url != "about:blank" {
				t.add("network", e.Request.URL)
			}
		}
	})
	return t, err
}

// stop is where the tab key leads to.
type stop struct {
	ID, Text string
	Visible  bool // its focus is marked
	End      bool // the page has no more
}

const readStop = `(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return {End: true};
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  return {
    ID: e.getAttribute("href") || e.tagName, Text: e.textContent.trim().slice(0, 60), End: false,
    Visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.bottom > 0 && box.top < innerHeight,
  };
})()`

// tabOrder goes through the page by the tab key: first to the link that skips to the findings, and to each finding.
func tabOrder(ctx context.Context) ([]checked, error) {
	links, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll(".finding h3 a")].map(a => a.getAttribute("href"))`))
	if err != nil {
		return nil, err
	}
	const most = 1000
	var wrong []checked
	reached := map[string]bool{}
	skips, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("document.getElementById('findings') !== null"))
	if err != nil {
		return nil, err
	}
	for i := range most {
		if err := chromedp.Do(ctx, chromedp.KeyEvent(kb.Tab)); err != nil {
			return nil, err
		}
		at, err := chromedp.Run(ctx, chromedp.Evaluate[stop](readStop))
		if err != nil {
			return nil, err
		}
		if at.End {
			break
		}
		if i == 0 && skips && at.ID != "#findings" {
			wrong = append(wrong, checked{"keyboard", "the first stop is " + at.ID + ", not the link to the findings"})
		}
		if !at.Visible {
			wrong = append(wrong, checked{"keyboard", fmt.Sprintf("focus cannot be seen on %s %q", at.ID, at.Text)})
		}
		reached[at.ID] = true
	}
	for _, link := range links {
		if !reached[link] {
			wrong = append(wrong, checked{"keyboard", "the tab key does not reach " + link})
		}
	}
	return wrong, nil
}
