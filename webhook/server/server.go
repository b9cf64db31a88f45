// Package server makes HTTP servers that no caller can exhaust: the number of connections, the size of headers and the
// time of everything are bounded.
package server

import (
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// maxHeaderBytes is far above what an API server, a kubelet or Prometheus sends, and far below Go's default of 1 MiB.
	maxHeaderBytes = 16 << 10
	// headerTimeout also bounds the TLS handshake.
	headerTimeout = 5 * time.Second
	idleTimeout   = 90 * time.Second
	// maxStreams are the requests that one HTTP/2 connection may have open; an API server opens another connection for more.
	maxStreams = 100
	// Receive buffers are memory that a caller fills before a handler has looked at the request.
	maxStreamBuffer     = 256 << 10
	maxConnectionBuffer = 1 << 20
)

// New makes a server that a manager can run, with at most so many connections. A request and its answer take no longer
// than timeout.
func New(name string, listener net.Listener, handler http.Handler, connections int, timeout time.Duration) *manager.Server {
	crowd := newCrowd(listener, connections)
	return &manager.Server{Name: name, Listener: crowd, Server: &http.Server{
		Handler:           handler,
		ConnState:         crowd.track,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       timeout,
		WriteTimeout:      timeout,
		IdleTimeout:       idleTimeout,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerStream:     maxStreamBuffer,
			MaxReceiveBufferPerConnection: maxConnectionBuffer,
			WriteByteTimeout:              timeout,
		},
	}}
}
