package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func serve(t *testing.T, connections int, timeout time.Duration, handler http.HandlerFunc) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- New("test", listener, handler, connections, timeout).Start(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-done) })
	return listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", address) //nolint:noctx // on loopback
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// ask sends a request and gives the status of the answer; 0 where the connection ends.
func ask(connection net.Conn) int {
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second)) // a test must not hang
	if _, err := fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0
	}
	return answer(connection)
}

func answer(connection net.Conn) int {
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func TestNewcomersTakeTheOldestPlaceWithoutRequest(t *testing.T) {
	address := serve(t, 3, time.Minute, func(http.ResponseWriter, *http.Request) {})
	idle := dial(t, address)
	require.Equal(t, http.StatusOK, ask(idle))
	for range 10 {
		dial(t, address) // and says nothing
	}
	assert.Eventually(t, func() bool { return ask(dial(t, address)) == http.StatusOK }, 5*time.Second, time.Millisecond)
	assert.Equal(t, http.StatusOK, ask(idle), "whoever has been served before keeps the place")
}

func TestNewestIdleConnectionGoesFirst(t *testing.T) {
	address := serve(t, 2, time.Minute, func(http.ResponseWriter, *http.Request) {})
	var idle []net.Conn
	for range 3 {
		connection := dial(t, address)
		require.Eventually(t, func() bool { return ask(connection) == http.StatusOK }, 5*time.Second, time.Millisecond)
		idle = append(idle, connection)
		time.Sleep(10 * time.Millisecond) // until the server knows it as idle
	}
	assert.Equal(t, http.StatusOK, ask(idle[0]), "the oldest is kept")
	assert.Zero(t, ask(idle[1]))
}

func TestActiveConnectionsAreKept(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	address := serve(t, 1, time.Minute, func(http.ResponseWriter, *http.Request) { close(begun); <-end })
	active := dial(t, address)
	status := make(chan int)
	go func() { status <- ask(active) }()
	<-begun
	assert.Zero(t, ask(dial(t, address)))
	close(end)
	assert.Equal(t, http.StatusOK, <-status)
}

func TestLargeHeadersAreRefused(t *testing.T) {
	address := serve(t, 1, time.Minute, func(http.ResponseWriter, *http.Request) {})
	connection := dial(t, address)
	_, err := fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: x\r\nX-Filler: %s\r\n\r\n", strings.Repeat("x", 32<<10))
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer(connection))
}

func TestSlowRequestsEnd(t *testing.T) {
	address := serve(t, 1, 50*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		assert.Error(t, err)
	})
	connection := dial(t, address)
	_, err := fmt.Fprint(connection, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, connection.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = io.ReadAll(connection)
	assert.NoError(t, err, "the server has closed it")
}
