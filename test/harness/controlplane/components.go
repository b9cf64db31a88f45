package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const loopback = "127.0.0.1"

func (c *ControlPlane) etcd(paths map[string]string) program {
	return program{name: etcd, path: paths[etcd], ports: 2,
		command: func(ports []int) ([]string, []string, error) {
			c.etcdURL = address("http", ports[0])
			peer := address("http", ports[1])
			return []string{
				"--data-dir=" + filepath.Join(c.Dir, "etcd"),
				"--listen-client-urls=" + c.etcdURL, "--advertise-client-urls=" + c.etcdURL,
				"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=default=" + peer,
				"--unsafe-no-fsync", // the state need not outlive a crash
			}, nil, nil
		},
		ready: func(ctx context.Context, ports []int) error {
			return c.probe(ctx, address("http", ports[0])+"/health")
		},
	}
}

// apiServer runs without --enable-aggregator-routing, so that a Service of type
// ExternalName with the name localhost leads to a webhook of the test's process.
func (c *ControlPlane) apiServer(opts Options, paths map[string]string) program {
	return program{name: apiServer, path: paths[apiServer], ports: 1,
		command: func(ports []int) ([]string, []string, error) {
			args := append(c.secureServing(ports[0]),
				"--etcd-servers="+c.etcdURL,
				"--advertise-address="+loopback, "--endpoint-reconciler-type=none",
				"--token-auth-file="+c.keys.tokenFile, "--client-ca-file="+c.keys.caFile,
				"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file="+c.keys.serviceAccountKeyFile,
				"--service-account-signing-key-file="+c.keys.serviceAccountKeyFile,
				"--service-cluster-ip-range=10.0.0.0/24",
				"--allow-privileged=true")
			if !opts.ControllerManager {
				args = append(args, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
			}
			if opts.WebhookClientName != "" {
				path, err := c.keys.writeAdmissionConfig(c.Dir, opts.WebhookClientName)
				if err != nil {
					return nil, nil, err
				}
				args = append(args, "--admission-control-config-file="+path)
			}
			if opts.AuditPolicy != "" {
				path := filepath.Join(c.Dir, "audit-policy.yaml")
				if err := os.WriteFile(path, []byte(opts.AuditPolicy), 0o600); err != nil {
					return nil, nil, fmt.Errorf("write the audit policy: %w", err)
				}
				args = append(args, "--audit-policy-file="+path, "--audit-log-path="+filepath.Join(c.Dir, "audit.log"))
			}
			var env []string
			if !opts.Measured {
				env = []string{"GOGC=400"}
			}
			return args, env, c.useAPIServer(address("https", ports[0]))
		},
		ready: func(ctx context.Context, ports []int) error {
			return c.probe(ctx, address("https", ports[0])+"/readyz")
		},
	}
}

func (c *ControlPlane) controllerManager(paths map[string]string) program {
	return program{name: controllerManager, path: paths[controllerManager], ports: 1,
		command: func(ports []int) ([]string, []string, error) {
			return append(c.controller(ports[0]),
				"--use-service-account-credentials=true", // the users that a real cluster sees
				"--service-account-private-key-file="+c.keys.serviceAccountKeyFile,
				"--root-ca-file="+c.keys.caFile,
				"--cluster-signing-cert-file="+c.keys.caFile,
				"--cluster-signing-key-file="+c.keys.caKeyFile), nil, nil
		},
		ready: func(ctx context.Context, ports []int) error {
			return c.probe(ctx, address("https", ports[0])+"/healthz")
		},
	}
}

func (c *ControlPlane) scheduler(paths map[string]string) program {
	return program{name: scheduler, path: paths[scheduler], ports: 1,
		command: func(ports []int) ([]string, []string, error) {
			return c.controller(ports[0]), nil, nil
		},
		ready: func(ctx context.Context, ports []int) error {
			return c.probe(ctx, address("https", ports[0])+"/readyz")
		},
	}
}

func (c *ControlPlane) kwok(opts Options, paths map[string]string) program {
	return program{name: kwok, path: paths[kwok], ports: 1,
		command: func(ports []int) ([]string, []string, error) {
			return []string{
				"--kubeconfig=" + c.Kubeconfig,
				"--config=" + paths[opts.stages()],
				"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
				"--node-lease-duration-seconds=40",
				"--cidr=10.244.0.0/16",
				"--node-ip=" + loopback,
				fmt.Sprintf("--server-address=%s:%d", loopback, ports[0]),
			}, nil, nil
		},
		ready: func(ctx context.Context, ports []int) error {
			return c.probe(ctx, address("http", ports[0])+"/healthz")
		},
	}
}

// startKarpenter applies Karpenter's CRDs, without which it does not start.
func (c *ControlPlane) startKarpenter(ctx context.Context, paths map[string]string) error {
	crds, err := os.ReadFile(paths[karpenterCRDs])
	if err != nil {
		return fmt.Errorf("read Karpenter's CRDs: %w", err)
	}
	objs, err := Decode(bytes.NewReader(crds))
	if err != nil {
		return fmt.Errorf("read Karpenter's CRDs: %w", err)
	}
	if err := c.Apply(ctx, objs...); err != nil {
		return err
	}
	typesFile := filepath.Join(c.Dir, "instance_types.json")
	if err := os.WriteFile(typesFile, instanceTypes, 0o600); err != nil {
		return fmt.Errorf("write Karpenter's instance types: %w", err)
	}
	return c.launch(ctx, c.karpenter(paths[karpenter], typesFile))
}

func (c *ControlPlane) karpenter(path, typesFile string) program {
	return program{name: karpenter, path: path, ports: 2,
		command: func(ports []int) ([]string, []string, error) {
			return nil, []string{
				"KUBECONFIG=" + c.Kubeconfig,
				"KUBERNETES_MIN_VERSION=1.19.0-0",
				"KARPENTER_SERVICE=karpenter",
				"SYSTEM_NAMESPACE=kube-system",
				"DISABLE_LEADER_ELECTION=true",
				fmt.Sprintf("METRICS_PORT=%d", ports[0]),
				fmt.Sprintf("HEALTH_PROBE_PORT=%d", ports[1]),
				"BATCH_IDLE_DURATION=1s",
				"BATCH_MAX_DURATION=10s",
				"INSTANCE_TYPES_FILE_PATH=" + typesFile,
			}, nil
		},
		ready: func(ctx context.Context, ports []int) error {
			return c.probe(ctx, address("http", ports[1])+"/readyz")
		},
	}
}

func (c *ControlPlane) secureServing(port int) []string {
	return []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.keys.certFile,
		"--tls-private-key-file=" + c.keys.keyFile,
	}
}

func (c *ControlPlane) controller(port int) []string {
	return append(c.secureServing(port),
		"--kubeconfig="+c.Kubeconfig,
		"--authentication-kubeconfig="+c.Kubeconfig,
		"--authorization-kubeconfig="+c.Kubeconfig,
		"--leader-elect=false")
}

// waitForDefaults waits for what every test counts on: the namespace default and,
// where something makes it, its ServiceAccount, without which pods are refused.
func (c *ControlPlane) waitForDefaults(ctx context.Context, serviceAccount bool) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startLimit, true, func(ctx context.Context) (bool, error) {
		last = c.client.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		if last == nil && serviceAccount {
			last = c.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the namespace default and its ServiceAccount: %w", errors.Join(err, last))
	}
	return nil
}

// probe reports why url does not answer 200.
func (c *ControlPlane) probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.keys.token)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.keys.ca)
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

func address(scheme string, port int) string {
	return fmt.Sprintf("%s://%s:%d", scheme, loopback, port)
}
