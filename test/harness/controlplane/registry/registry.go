// Package registry serves container images from memory to clients that pull them,
// and counts what each client pulls.
package registry

import (
	"bytes"
	"cmp"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// A limited registry sends chunks of so many bytes, as http.ServeContent writes
// them, and a burst of so many of them to catch up with the time that a busy machine
// took from it.
const (
	chunk = 32 << 10
	burst = 16
)

// Registry is an http.Handler that speaks the part of the OCI distribution
// protocol that pulls. It stands for every registry: a client names the one that it
// means in the parameter ns of the query, as containerd does with a mirror.
type Registry struct {
	mu      sync.Mutex
	images  map[string]Image // by reference, with a tag or a digest
	pulled  map[string]int64
	limiter flowcontrol.RateLimiter // nil: unlimited
}

// New makes a registry without images that is as fast as it can be.
func New() *Registry {
	return &Registry{images: map[string]Image{}, pulled: map[string]int64{}}
}

// Push puts an image under a full reference with a tag, such as
// example.com/notebook:1, in place of what was there.
func (r *Registry) Push(reference string, image Image) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[reference] = image
	repository := reference[:strings.LastIndex(reference, ":")]
	r.images[repository+"@"+image.Digest()] = image
}

// Limit bounds what the registry sends to all of its clients together, in bytes per
// second; 0 lifts the bound. Transfers that have begun keep the bound they had.
func (r *Registry) Limit(bytesPerSecond int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limiter = nil
	if bytesPerSecond != 0 {
		r.limiter = flowcontrol.NewTokenBucketRateLimiter(float32(bytesPerSecond)/chunk, burst)
	}
}

// Pulled is how many bytes of layers and configurations a client with this IP
// address was sent.
func (r *Registry) Pulled(ip string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulled[ip]
}

var route = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs)/([^/]+)$`)

// ServeHTTP answers GET and HEAD of manifests and blobs.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		http.Error(w, "this registry is for pulling only", http.StatusMethodNotAllowed)
		return
	}
	if request.URL.Path == "/v2/" {
		return
	}
	match := route.FindStringSubmatch(request.URL.Path)
	if match == nil {
		http.NotFound(w, request)
		return
	}
	repository := cmp.Or(request.URL.Query().Get("ns"), request.Host) + "/" + match[1]
	if match[2] == "manifests" {
		r.serveManifest(w, request, repository, match[3])
	} else {
		r.serveBlob(w, request, match[3])
	}
}

func (r *Registry) serveManifest(w http.ResponseWriter, request *http.Request, repository, name string) {
	separator := ":"
	if strings.Contains(name, ":") { // a digest
		separator = "@"
	}
	r.mu.Lock()
	image, ok := r.images[repository+separator+name]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Type", manifestType)
	w.Header().Set("Docker-Content-Digest", image.Digest())
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(image.manifest))
}

func (r *Registry) serveBlob(w http.ResponseWriter, request *http.Request, name string) {
	blob, limiter := r.blob(name)
	if blob == nil {
		http.NotFound(w, request)
		return
	}
	ip, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", name)
	sent := &meter{ResponseWriter: w, registry: r, limiter: limiter, ip: ip}
	http.ServeContent(sent, request, "", time.Time{}, bytes.NewReader(blob))
}

func (r *Registry) blob(name string) ([]byte, flowcontrol.RateLimiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, image := range r.images {
		if blob := image.blobs[name]; blob != nil {
			return blob, r.limiter
		}
	}
	return nil, nil
}

// meter sends in chunks, at the pace of a limiter, and counts.
type meter struct {
	http.ResponseWriter
	registry *Registry
	limiter  flowcontrol.RateLimiter
	ip       string
}

// Write sends data and returns how many bytes of it were sent.
func (m *meter) Write(data []byte) (int, error) {
	total := 0
	for len(data) > 0 {
		if m.limiter != nil {
			m.limiter.Accept()
		}
		n, err := m.ResponseWriter.Write(data[:min(chunk, len(data))])
		m.registry.count(m.ip, n)
		total += n
		if err != nil {
			return total, err
		}
		data = data[n:]
	}
	return total, nil
}

func (r *Registry) count(ip string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulled[ip] += int64(n)
}
