package rbac_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"warmpool.sh/test/harness/install"
)

// user is who warmpool is to the API server.
const user = "system:serviceaccount:" + install.Namespace + ":warmpool"

// auditPolicy notes all that warmpool asks for. A watch is noted when it begins and when it ends.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + user + `"]
- level: None
`

// request is what warmpool asked the API server for.
type request struct {
	group, resource, verb, namespace, name string
}

func (r request) String() string {
	return r.verb + " of " + object(r.group, r.resource, r.namespace, r.name)
}

// asked are the requests in an API server's audit log so far, each once: those that it allowed, and those that it forbade, by
// rights or by a policy.
func asked(dir string) (allowed, forbidden []request, err error) {
	log, err := os.ReadFile(filepath.Join(dir, "audit.log"))
	if err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var event struct {
			Verb           string
			RequestURI     string
			User           struct{ Username string }
			ObjectRef      *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
			ResponseStatus *struct{ Code int }
			// A request has no decision when it was not for this user to make, such as one without a good token.
			Annotations map[string]string
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, nil, fmt.Errorf("read the audit log: %w", err)
		}
		decision := event.Annotations["authorization.k8s.io/decision"]
		if event.User.Username != user || decision == "" {
			continue
		}
		r := request{resource: event.RequestURI, verb: event.Verb} // what is no resource
		if ref := event.ObjectRef; ref != nil {
			r = request{group: ref.APIGroup, resource: ref.Resource, verb: event.Verb, namespace: ref.Namespace, name: ref.Name}
			if ref.Subresource != "" {
				r.resource += "/" + ref.Subresource
			}
		}
		if r.verb == "create" {
			r.name = "" // there is none yet when a create is judged
		}
		of := &forbidden
		// What a policy refuses is noted here by its binding, warmpool-own-writes.
		if decision == "allow" && event.Annotations["validation.policy.admission.k8s.io/validation_failure"] == "" {
			of = &allowed
		}
		note(of, r)
		// Server-side apply of what was not there is judged as a patch, which the log tells, and as a create of that name.
		if status := event.ResponseStatus; r.verb == "patch" && status != nil && status.Code == http.StatusCreated {
			r.verb = "create"
			note(of, r)
		}
	}
	return allowed, forbidden, nil
}

// note adds a request that is not there yet.
func note(requests *[]request, r request) {
	if !slices.Contains(*requests, r) {
		*requests = append(*requests, r)
	}
}
