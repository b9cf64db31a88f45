package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/bench/baseline"
	"warmpool.sh/test/bench/proc"
	"warmpool.sh/test/bench/result"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
)

// shape is how many connections there are, and how many requests each has in work at once. An API server has one connection
// with many requests.
type shape struct{ connections, streams int }

var shapes = []shape{{1, 1}, {16, 1}, {128, 1}, {1, 128}}

// ask sends reviews to the servers without an API server between, and prints a line for each server, shape and round.
func (c *cluster) ask(ctx context.Context, o options, random *rand.Rand, out io.Writer) error {
	body, err := baseline.Review(c.root, "pod.json")
	if err != nil {
		return err
	}
	for range o.rounds {
		for _, s := range shapes {
			answers := make([]load, len(c.servers))
			for _, i := range random.Perm(len(c.servers)) {
				if answers[i], err = c.load(ctx, c.servers[i], s, body, o.window); err != nil {
					return fmt.Errorf("%s: %w", c.servers[i].name, err)
				}
			}
			if err := c.writeLoads(out, s, answers); err != nil {
				return err
			}
		}
	}
	return nil
}

// load is what a server did in a window of time.
type load struct {
	took []time.Duration
	wall time.Duration
	cpu  time.Duration // of the server
}

func (c *cluster) load(ctx context.Context, s server, sh shape, body []byte, window time.Duration) (l load, err error) {
	settings, err := c.trust(ctx, s)
	if err != nil {
		return l, err
	}
	var clients []*http.Client
	for range sh.connections {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: settings}
		defer transport.CloseIdleConnections()
		clients = append(clients, &http.Client{Transport: transport})
		if err := post(ctx, clients[len(clients)-1], s, body); err != nil { // which connects
			return l, err
		}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	before, err := proc.CPU(s.pid)
	if err != nil {
		return l, err
	}
	began := time.Now()
	for i := range sh.connections * sh.streams {
		group.Go(func() {
			var took []time.Duration
			for time.Since(began) < window {
				sent := time.Now()
				if e := post(ctx, clients[i%len(clients)], s, body); e != nil {
					mu.Lock()
					defer mu.Unlock()
					err = e
					return
				}
				took = append(took, time.Since(sent))
			}
			mu.Lock()
			defer mu.Unlock()
			l.took = append(l.took, took...)
		})
	}
	group.Wait()
	if err != nil {
		return l, err
	}
	l.wall = time.Since(began)
	after, err := proc.CPU(s.pid)
	l.cpu = after - before
	return l, err
}

func post(ctx context.Context, c *http.Client, s server, body []byte) error {
	url := "https://127.0.0.1:" + strconv.Itoa(s.port) + webhook.PodsPath
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && (response.StatusCode != http.StatusOK || response.ProtoMajor != 2) {
		err = fmt.Errorf("%s %s: %.200s", response.Proto, response.Status, answer)
	}
	return err
}

// trust is what an API server goes by when it connects to the server.
func (c *cluster) trust(ctx context.Context, s server) (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "localhost", RootCAs: x509.NewCertPool()}
	ca, err := os.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	if s.name == string(warmpool) {
		var all admissionv1.MutatingWebhookConfiguration
		if err := c.admin.Get(ctx, client.ObjectKey{Name: "warmpool-pods"}, &all); err != nil {
			return nil, err
		}
		settings.ServerName, ca = install.Service+"."+install.Namespace+".svc", all.Webhooks[0].ClientConfig.CABundle
	}
	if !settings.RootCAs.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no CA is known of %s", s.name)
	}
	return settings, nil
}

func (c *cluster) writeLoads(out io.Writer, sh shape, answers []load) error {
	name := fmt.Sprintf("%d-at-once-on-%d-connections", sh.connections*sh.streams, sh.connections)
	rate := func(l load) float64 { return float64(len(l.took)) / l.wall.Seconds() }
	var floor load
	for i, s := range c.servers {
		if s.name == string(noop) {
			floor = answers[i]
		}
	}
	for i, s := range c.servers {
		l := answers[i]
		p50, p99 := result.Quantile(l.took, .5), result.Quantile(l.took, .99)
		err := result.Write(out, "HTTP2/"+name+"/"+s.name, len(l.took),
			result.Metric{Unit: "requests/s", Value: rate(l)},
			result.Metric{Unit: "p50-ms", Value: milliseconds(p50)},
			result.Metric{Unit: "p99-ms", Value: milliseconds(p99)},
			result.Metric{Unit: "cpu-us/request", Value: float64(l.cpu.Microseconds()) / float64(len(l.took))},
			result.Metric{Unit: "requests-x-noop", Value: rate(l) / rate(floor)},
			result.Metric{Unit: "p50-x-noop", Value: float64(p50) / float64(result.Quantile(floor.took, .5))},
			result.Metric{Unit: "p99-x-noop", Value: float64(p99) / float64(result.Quantile(floor.took, .99))})
		if err != nil {
			return err
		}
	}
	return nil
}
