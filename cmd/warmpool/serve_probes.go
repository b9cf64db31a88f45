package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"warmpool.sh/webhook/server"
)

// stopping is what /readyz says from the signal to stop on.
const stopping = "stopping"

const (
	// lookInterval is for how long an answer of the checks holds.
	lookInterval = time.Second
	// lookTimeout is shorter than the kubelet waits, so that it reads the reason.
	lookTimeout = 2 * time.Second
)

// probes is a manager whose /readyz says what is wrong; the manager's own withholds it, and so does the kubelet. What
// changes is in the log, and faults are Events of warmpool's own pod too, for `kubectl describe pod`.
type probes struct {
	manager.Manager
	events teller

	mu     sync.Mutex
	checks map[string]healthz.Checker
	stop   bool
	last   string // fault that was reported last

	looking sync.Mutex
	looked  readiness
}

// teller records Events; it is the Recorder of webhook/events.
type teller interface {
	Eventf(regarding, related runtime.Object, kind, reason, action, format string, args ...any)
}

// newProbes adds probes to a manager that has none; they are served at address, and nowhere if that is 0.
func newProbes(mgr manager.Manager, address string, events teller) (*probes, error) {
	p := &probes{Manager: mgr, events: events, checks: map[string]healthz.Checker{}, last: "not asked yet"}
	if address == "" || address == "0" {
		return p, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	// It says that the process answers, no more: what else may be wrong, no restart fixes.
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", p.serveReady)
	return p, mgr.Add(server.New("health probe", listener, mux, probeConnections, probeTimeout))
}

// AddReadyzCheck makes /readyz fail while check does.
func (p *probes) AddReadyzCheck(name string, check healthz.Checker) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, found := p.checks[name]; found {
		return fmt.Errorf("there is a readiness check %q already", name)
	}
	p.checks[name] = check
	return nil
}

// serveReady answers 200, or 503 with one line for each check.
func (p *probes) serveReady(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	stop := p.stop
	p.mu.Unlock()
	if stop {
		p.tell(stopping)
		http.Error(w, stopping, http.StatusServiceUnavailable)
		return
	}
	switch found := p.look(); {
	case found.fault != "":
		http.Error(w, strings.Join(found.lines, "\n"), http.StatusServiceUnavailable)
	case r.URL.Query().Has("verbose"):
		_, _ = fmt.Fprintln(w, strings.Join(found.lines, "\n"))
	default:
		_, _ = fmt.Fprint(w, "ok")
	}
}

// readiness is what the checks said when they were run.
type readiness struct {
	at    time.Time
	lines []string
	fault string // empty when all is well
}

// look runs the checks, at most once in lookInterval however often it is called. Their time is not that of whoever asks: a
// caller that hangs up is no fault of warmpool.
func (p *probes) look() readiness {
	p.looking.Lock()
	defer p.looking.Unlock()
	if time.Since(p.looked.at) < lookInterval {
		return p.looked
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	request := (&http.Request{URL: &url.URL{Path: "/readyz"}}).WithContext(ctx)
	p.mu.Lock()
	checks := p.checks // complete before the manager starts
	p.mu.Unlock()
	var found readiness
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := checks[name](request); err != nil {
			found.lines = append(found.lines, fmt.Sprintf("[-]%s: %v", name, err))
			faults = append(faults, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		found.lines = append(found.lines, fmt.Sprintf("[+]%s ok", name))
	}
	found.fault, found.at = strings.Join(faults, "; "), time.Now()
	p.tell(found.fault)
	p.looked = found
	return found
}

// tell makes a change of readiness known; the fault is empty when there is none.
func (p *probes) tell(fault string) {
	p.mu.Lock()
	changed := fault != p.last
	p.last = fault
	p.mu.Unlock()
	log := p.GetLogger().WithName("probes")
	switch {
	case !changed:
	case fault == "":
		log.Info("ready")
	default:
		log.Info("not ready", "reason", fault)
		if pod := ownPod(); pod != nil && fault != stopping {
			p.events.Eventf(pod, nil, corev1.EventTypeWarning, "NotReady", "Probe", "%.1000s", fault)
		}
	}
}

// drainTimeout bounds what comes after the delay of stopAfter: the API servers wait for no answer as long as this.
const drainTimeout = 20 * time.Second

// stopAfter is a context that ends some time after ctx. Until then /readyz fails while all else goes on: requests come in
// until each API server's node has heard that this replica goes. The manager then closes the servers, and each answers
// what it has begun.
func (p *probes) stopAfter(ctx context.Context, delay time.Duration) context.Context {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.stop = true
		p.mu.Unlock()
		p.GetLogger().Info("stopping: not ready from now on, still serving", "delay", delay)
		time.AfterFunc(delay, cancel)
	})
	return late
}

// sendAway has each connection that a request comes through while this replica stops end as HTTP/2 does it, with nothing
// lost (GOAWAY), and so the API servers connect anew, to replicas that stay. The server, when it closes, would cut a
// connection that is idle just then, and lose the request that is on its way through it.
func (p *probes) sendAway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		stop := p.stop
		p.mu.Unlock()
		if stop {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// serverProbe asks the webhook server of this process for an answer, of whatever kind: a server that is full, or in which no
// request gets on, has none. It asks for no admission: a replica with as many in work as it may have answers that too (429), and
// to take it away would give its requests to the others. It makes itself known by a name that no one else can know, because it
// has no client certificate.
type serverProbe struct{ address, name string }

func newServerProbe(host string, port int) serverProbe {
	return serverProbe{net.JoinHostPort(host, strconv.Itoa(port)), strings.ToLower(rand.Text()) + ".invalid"}
}

func (p serverProbe) check(r *http.Request) error {
	dialer := tls.Dialer{Config: &tls.Config{
		ServerName:         p.name,
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // it tells this process nothing; another check is about the certificate
	}}
	connection, err := dialer.DialContext(r.Context(), "tcp", p.address)
	if err != nil {
		return fmt.Errorf("the webhook server does not answer: %w", err)
	}
	defer connection.Close() //nolint:errcheck // nothing is lost
	if deadline, ok := r.Context().Deadline(); ok {
		_ = connection.SetDeadline(deadline) // an open connection takes one
	}
	if _, err = fmt.Fprintf(connection, "HEAD / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", p.name); err == nil {
		_, err = io.ReadFull(connection, make([]byte, 1))
	}
	if err != nil {
		return fmt.Errorf("the webhook server does not answer a request: %w", err)
	}
	return nil
}
