// Package baseline is what warmpool is measured against: webhooks that do nothing, answer all with the same patch, or do the
// same work by controller-runtime's default path; and the request that all of them answer.
package baseline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// Constant is a handler that decodes the review and allows with this JSON patch; with none it changes nothing. No one who
// decodes the review can do less.
func Constant(patch []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		body.Grow(int(r.ContentLength) + bytes.MinRead)
		if _, err := body.ReadFrom(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var in admissionv1.AdmissionReview
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body.Bytes(), &in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		in.Response = &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}
		if len(patch) > 0 {
			in.Response.Patch, in.Response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
		}
		in.Request = nil
		_ = json.NewEncoder(w).Encode(in) // who hung up measures nothing
	})
}

// Framework does what warmpool does to pods by controller-runtime's defaulter of typed objects: deep copy, marshal and diff
// are its own.
func Framework(e *policy.Evaluator) http.Handler {
	return admission.WithDefaulter(clientgoscheme.Scheme, &podDefaulter{e})
}

type podDefaulter struct{ *policy.Evaluator }

// Default places the pod.
func (d *podDefaulter) Default(ctx context.Context, pod *corev1.Pod) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	o := d.Pod(pod, request.Namespace)
	d.Mutate(o)
	d.Check(o)
	*pod = *o.Pod
	return nil
}

// Examples is the folder of the cluster that requests are judged by, below the repository's.
func Examples(root string) string { return filepath.Join(root, "manifests", "examples", "fine") }

// Evaluator goes by a configuration file and the facts of the example cluster in the repository at root.
func Evaluator(root, configFile string) (*policy.Evaluator, error) {
	facts, _, err := manifest.Read([]string{Examples(root)}, nil)
	if err != nil {
		return nil, fmt.Errorf("read the example cluster: %w", err)
	}
	data, err := os.ReadFile(configFile)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	cfg, err := config.Load(data, policy.IDs())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	return policy.New(cfg, facts, time.Unix(0, 0))
}

// Review wraps an object of testdata, as it arrives at admission, into the envelope of an API server.
func Review(root, file string) ([]byte, error) {
	testdata := filepath.Join(root, "test", "bench", "testdata")
	object, err := os.ReadFile(filepath.Join(testdata, file))
	if err != nil {
		return nil, err
	}
	envelope, err := os.ReadFile(filepath.Join(testdata, "envelope.json"))
	if err != nil {
		return nil, err
	}
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal(envelope, &in); err != nil {
		return nil, fmt.Errorf("envelope.json: %w", err)
	}
	var meta struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &meta); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	in.Request.Name, in.Request.Namespace = meta.Metadata.Name, meta.Metadata.Namespace
	if meta.Kind == "Deployment" {
		in.Request.Kind.Group, in.Request.Kind.Kind = "apps", "Deployment"
		in.Request.Resource.Group, in.Request.Resource.Resource = "apps", "deployments"
		in.Request.RequestKind, in.Request.RequestResource = &in.Request.Kind, &in.Request.Resource
	}
	in.Request.Object.Raw = object
	return json.Marshal(in)
}
