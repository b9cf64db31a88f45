package faults_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

// probePeriod is how often readiness is asked for. A kubelet asks each 5 s, but tells at once that a container has ended.
const probePeriod = 200 * time.Millisecond

// service is to the API server what a Service and its endpoints are: one address, whose new connections go to the replicas
// that are ready, in turn. As kube-proxy, it leaves the connections alone that there are.
type service struct {
	port int

	mu        sync.Mutex
	listener  net.Listener
	endpoints []*endpoint
	dials     int  // connections that it was asked for
	dead      int  // of them, those that went to an endpoint that no one had told was gone
	frozen    bool // no one hears what the probes say
}

type endpoint struct {
	*install.Warmpool
	ready bool
	sent  atomic.Int64 // bytes to it
	stop  context.CancelFunc
}

func newService(t *testing.T) *service {
	t.Helper()
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	s := &service{port: port}
	s.open(t)
	t.Cleanup(s.close)
	return s
}

func (s *service) address() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// open listens; whoever comes while there is no endpoint is turned away.
func (s *service) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", s.address())
	require.NoError(t, err)
	s.listener = listener
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go s.forward(connection)
		}
	}()
}

// close has connections refused, as kube-proxy does where a Service has no endpoint.
func (s *service) close() { _ = s.listener.Close() }

// add makes a replica an endpoint, from when it is ready.
func (s *service) add(w *install.Warmpool) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &endpoint{Warmpool: w, stop: cancel}
	s.mu.Lock()
	s.endpoints = append(s.endpoints, e)
	s.mu.Unlock()
	go func() {
		tick := time.NewTicker(probePeriod)
		defer tick.Stop()
		for {
			attempt, done := context.WithTimeout(ctx, 3*time.Second)
			ready := install.Get(attempt, w.HealthURL+"/readyz") == nil
			done()
			s.mu.Lock()
			if !s.frozen {
				e.ready = ready
			}
			s.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}

// remove forgets a replica; what goes through its connections goes on.
func (s *service) remove(w *install.Warmpool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = slices.DeleteFunc(s.endpoints, func(e *endpoint) bool {
		if e.Warmpool == w {
			e.stop()
		}
		return e.Warmpool == w
	})
}

// pick takes the ready endpoints in turn.
func (s *service) pick() *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	var ready []*endpoint
	for _, e := range s.endpoints {
		if e.ready {
			ready = append(ready, e)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[s.dials%len(ready)]
}

// freeze keeps the endpoints as they are, or ends that.
func (s *service) freeze(frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
}

// connections is how many the API server has asked for so far.
func (s *service) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// deadEnds is how many of them were sent to a replica that had ended.
func (s *service) deadEnds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

func (s *service) forward(client net.Conn) {
	var backend net.Conn
	e, err := s.pick(), errors.New("no endpoint")
	if e != nil {
		backend, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(e.WebhookPort))
	}
	if err != nil {
		s.mu.Lock()
		s.dead++
		s.mu.Unlock()
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as of a host where no one listens
		}
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	one := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		// Either end closes the whole: HTTP/2 knows no half.
		_, _ = client.Close(), backend.Close()
	}
	both.Go(func() { one(io.MultiWriter(backend, counter{&e.sent}), client) })
	both.Go(func() { one(client, backend) })
	both.Wait()
}

// counter counts the bytes written to it.
type counter struct{ *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// serving is the replica that the API server talks to just now; there has to be load.
func (s *service) serving(t *testing.T) *install.Warmpool {
	t.Helper()
	s.mu.Lock()
	endpoints := slices.Clone(s.endpoints)
	s.mu.Unlock()
	before := make([]int64, len(endpoints))
	for i, e := range endpoints {
		before[i] = e.sent.Load()
	}
	const several = 10_000 // bytes, more than a handshake
	var found *install.Warmpool
	await.NoError(t, limit, "a replica serves", func() error {
		for i, e := range endpoints {
			if e.sent.Load() > before[i]+several {
				found = e.Warmpool
				return nil
			}
		}
		return errors.New("none is asked")
	})
	return found
}
