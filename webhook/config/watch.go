package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// settleTime lets the several events of one change pass before the file is read.
	settleTime = 50 * time.Millisecond
	// pollInterval finds what events do not tell: changes behind links, on network file systems, without inotify.
	pollInterval = 10 * time.Second
)

// Watcher keeps the configuration equal to its file. It is a Runnable of controller-runtime's manager.
type Watcher struct {
	path     string
	ruleIDs  []string
	onChange func(*WarmPoolConfiguration)
	onError  func(error)
	poll     time.Duration
	current  atomic.Pointer[WarmPoolConfiguration]
	seen     [sha256.Size]byte // of the content, or of the error of reading it, at the last look
}

// NewWatcher reads the file, which must be good; ruleIDs are the rules that it may name. From Start on, onChange gets each
// good new configuration (it is then Current; also a configuration that is back after an error), and onError each fault
// once (the configuration in force stays). They are called one at a time.
func NewWatcher(path string, ruleIDs []string, onChange func(*WarmPoolConfiguration), onError func(error)) (*Watcher, error) {
	w := &Watcher{path: path, ruleIDs: ruleIDs, onChange: onChange, onError: onError, poll: pollInterval}
	c, _, err := w.look()
	if err != nil {
		return nil, err
	}
	w.current.Store(c)
	return w, nil
}

// Current returns the configuration in force, which no one may change. It is safe for concurrent use.
func (w *Watcher) Current() *WarmPoolConfiguration { return w.current.Load() }

// NeedLeaderElection returns false: each replica follows its own file.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start follows the file until ctx ends; it returns nil.
func (w *Watcher) Start(ctx context.Context) error {
	var events <-chan fsnotify.Event
	var errs <-chan error
	watchFolder := func() {}
	if notify, err := fsnotify.NewWatcher(); err != nil {
		log.FromContext(ctx).Info("no file events: the configuration file is only polled", "interval", w.poll, "reason", err.Error())
	} else {
		defer func() { _ = notify.Close() }()
		events, errs = notify.Events, notify.Errors
		// The folder, as in a ConfigMap's mount the file is a link that stays while the folder behind it is swapped.
		// That the folder is missing shows in reload.
		watchFolder = func() { _ = notify.Add(filepath.Dir(w.path)) }
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	watchFolder()
	settled := time.After(0) // The file may have changed before the watch.
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events:
			// The next events do not move the time: a busy folder must not put off the reading permanently.
			if settled == nil {
				settled = time.After(settleTime)
			}
		case <-errs: //nolint:errcheck // the poll does what is left to do
			// Events were lost, perhaps ours; the poll finds the change.
		case <-settled:
			settled = nil
			w.reload()
		case <-poll.C:
			watchFolder() // It may have been replaced; nothing happens if it is watched.
			w.reload()
		}
	}
}

func (w *Watcher) reload() {
	c, changed, err := w.look()
	switch {
	case !changed:
	case err != nil:
		w.onError(fmt.Errorf("the configuration in force stays: %w", err))
	default:
		w.current.Store(c)
		w.onChange(c)
	}
}

// look reads the file; changed is false, and nothing else is told, if it is as it was at the last look.
func (w *Watcher) look() (c *WarmPoolConfiguration, changed bool, err error) {
	data, err := w.read()
	seen := sha256.Sum256(data)
	if err != nil {
		seen = sha256.Sum256([]byte(err.Error()))
	}
	if seen == w.seen {
		return nil, false, nil
	}
	w.seen = seen
	if err == nil {
		c, err = Load(data, w.ruleIDs)
	}
	if err != nil {
		return nil, true, fmt.Errorf("read configuration %s: %w", w.path, err)
	}
	return c, true, nil
}

// read returns the file's content, of a file that is too large just enough for Load to see it.
func (w *Watcher) read() ([]byte, error) {
	f, err := os.Open(w.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}
