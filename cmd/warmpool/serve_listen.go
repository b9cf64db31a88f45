package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"warmpool.sh/webhook/server"
)

// Bounds of the three ports. An API server needs one connection or a few, Prometheus and the kubelet one each.
const (
	webhookConnections = 128
	webhookTimeout     = 20 * time.Second // longer than the handlers' own deadlines
	scrapeConnections  = 32
	scrapeTimeout      = 10 * time.Second
	probeConnections   = 32
	probeTimeout       = 5 * time.Second
)

// webhookServer is controller-runtime's, with its metrics, behind a server that strangers cannot exhaust.
type webhookServer struct{ *ctrlwebhook.DefaultServer }

func newWebhookServer(o ctrlwebhook.Options) webhookServer {
	if o.WebhookMux == nil {
		o.WebhookMux = http.NewServeMux()
	}
	return webhookServer{&ctrlwebhook.DefaultServer{Options: o}}
}

// Start serves until the context ends.
func (s webhookServer) Start(ctx context.Context) error {
	o := &s.Options
	config := &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	for _, set := range o.TLSOpts {
		set(config)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)), config)
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	return server.New("webhook", listener, o.WebhookMux, webhookConnections, webhookTimeout).Start(ctx)
}

// addMetricsServer serves /metrics at the address; "0" or nothing is for none.
func addMetricsServer(mgr manager.Manager, address string) error {
	if address == "" || address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: scrapeConnections,
	}))
	return mgr.Add(server.New("metrics", listener, mux, scrapeConnections, scrapeTimeout))
}
