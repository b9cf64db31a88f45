package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// crowd is a listener with a bounded number of connections. When it is full, a new connection takes the place of one that
// does nothing: a caller that only opens connections cannot keep others out.
type crowd struct {
	net.Listener
	limit int

	mu          sync.Mutex
	connections map[net.Conn]standing
}

// standing is what a connection does, and since when.
type standing struct {
	state http.ConnState
	since time.Time
}

func newCrowd(listener net.Listener, limit int) *crowd {
	return &crowd{Listener: listener, limit: limit, connections: map[net.Conn]standing{}}
}

// Accept returns the connection as the listener made it: net/http looks for *tls.Conn.
func (c *crowd) Accept() (net.Conn, error) {
	connection, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connections[connection] = standing{http.StateNew, time.Now()}
	if len(c.connections) > c.limit {
		c.closeOne(connection)
	}
	return connection, nil
}

// closeOne closes a connection that has not sent a request yet, the oldest of them. Without one, and where most are idle, it
// closes the newest of these: an API server keeps its connection for long. Else it closes the one that came.
func (c *crowd) closeOne(newcomer net.Conn) {
	victim, idle := newcomer, 0
	worst := standing{state: http.StateActive}
	for connection, s := range c.connections {
		if s.state == http.StateIdle {
			idle++
		}
		if connection != newcomer && worse(s, worst) {
			victim, worst = connection, s
		}
	}
	if worst.state == http.StateIdle && idle <= c.limit/2 {
		victim = newcomer
	}
	delete(c.connections, victim)
	if secure, ok := victim.(*tls.Conn); ok {
		victim = secure.NetConn() // closing a tls.Conn waits until the caller has read the alert
	}
	_ = victim.Close() // it is given up either way
}

// worse reports whether a is to be closed rather than b.
func worse(a, b standing) bool {
	switch {
	case a.state == b.state && a.state == http.StateNew:
		return a.since.Before(b.since)
	case a.state == b.state && a.state == http.StateIdle:
		return a.since.After(b.since)
	default:
		return a.state == http.StateNew || a.state == http.StateIdle && b.state == http.StateActive
	}
}

// track is for http.Server.ConnState.
func (c *crowd) track(connection net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, known := c.connections[connection]
	switch {
	case !known: // closed by closeOne
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.connections, connection)
	case state != s.state:
		c.connections[connection] = standing{state, time.Now()}
	}
}
