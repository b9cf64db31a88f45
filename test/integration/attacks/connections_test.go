package attacks_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
)

// Headers of almost 1 MiB that never end, by many connections to each port.
func TestUnfinishedHeaders(t *testing.T) {
	c := newCluster(t)
	stop := c.create(t)
	addresses := []string{address(t, c.warmpool.HealthURL), address(t, c.warmpool.MetricsURL), fmt.Sprintf("127.0.0.1:%d", c.warmpool.WebhookPort)}
	for _, address := range addresses {
		for range 460 {
			connection := dial(t, address, address == addresses[2])
			if connection == nil {
				continue
			}
			_, _ = connection.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n"))
			for range 63 {
				if _, err := connection.Write(append([]byte("X-Filler: "), bytes.Repeat([]byte("x"), 16<<10)...)); err != nil {
					break // the server has had enough
				}
			}
		}
		require.Eventually(t, func() bool { return install.Get(t.Context(), c.warmpool.HealthURL+"/readyz") == nil }, 5*time.Second, 50*time.Millisecond,
			"as soon as the last of these connections has been accepted, others are served")
	}
	c.withstood(t, "460 connections to each port, with headers that never end", stop)
}

func address(t *testing.T, of string) string {
	t.Helper()
	parsed, err := url.Parse(of)
	require.NoError(t, err)
	return parsed.Host
}

// dial connects; nil where the server has closed the connection already.
func dial(t *testing.T, address string, secure bool) net.Conn {
	t.Helper()
	connection, err := net.DialTimeout("tcp", address, 5*time.Second) //nolint:noctx // it has a time limit
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	if !secure {
		return connection
	}
	client := tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
	if client.Handshake() != nil { //nolint:noctx // the server has a time limit
		return nil
	}
	return client
}

// One HTTP/2 connection asks for as many admissions as it may and reads no answer: its window is 0.
func TestAnswersThatNoOneReads(t *testing.T) {
	c := newCluster(t)
	stop := c.create(t)
	connection := dial(t, fmt.Sprintf("127.0.0.1:%d", c.warmpool.WebhookPort), false)
	client := tls.Client(connection, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, client.HandshakeContext(t.Context()))
	_, err := client.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	framer := http2.NewFramer(client, client)
	require.NoError(t, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	body := reviews(webhook.PodsPath, 600)[0]
	require.Less(t, len(body), 16<<10)
	streams := 0
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); streams++ {
		if post(framer, uint32(2*streams+1), body) != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	assert.Greater(t, streams, 62)
	c.withstood(t, "An HTTP/2 connection asks for admissions and reads no answer", stop)
}

// post sends a review on a stream of its own.
func post(framer *http2.Framer, stream uint32, body []byte) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", webhook.PodsPath},
		{"content-type", "application/json"}, {"content-length", fmt.Sprint(len(body))},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return err
		}
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	return framer.WriteData(stream, true, body)
}
