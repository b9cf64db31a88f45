// Command server serves a baseline as a webhook of pods, by the server and the TLS settings of warmpool serve.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"warmpool.sh/test/bench/baseline"
	"warmpool.sh/webhook"
)

func main() {
	answer := flag.String("answer", "noop", "What to answer: noop, constant (needs --patch) or framework (needs --root and --config)")
	patch := flag.String("patch", "", "File with the JSON patch of each answer")
	root := flag.String("root", "", "The repository's folder")
	config := flag.String("config", "", "File with the WarmPoolConfiguration")
	port := flag.Int("port", 0, "Port of 127.0.0.1 to listen on")
	certs := flag.String("certs", "", "Folder with tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	handler, err := handler(*answer, *patch, *root, *config)
	if err == nil {
		server := ctrlwebhook.NewServer(ctrlwebhook.Options{
			Host: "127.0.0.1", Port: *port, CertDir: *certs, TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }},
		})
		server.Register(webhook.PodsPath, handler)
		err = server.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func handler(answer, patch, root, config string) (http.Handler, error) {
	switch answer {
	case "noop":
		return baseline.Constant(nil), nil
	case "constant":
		bytes, err := os.ReadFile(patch)
		return baseline.Constant(bytes), err
	case "framework":
		e, err := baseline.Evaluator(root, config)
		if err != nil {
			return nil, err
		}
		return baseline.Framework(e), nil
	}
	return nil, fmt.Errorf("--answer %s is none of noop, constant, framework", answer)
}
