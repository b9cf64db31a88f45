package simulation

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Images of the WorkspaceTemplates at first, and a newer one of each.
const (
	CPUImage    = "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu"
	GPUImage    = "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu"
	NewCPUImage = "public.ecr.aws/sagemaker/sagemaker-distribution:3.3.0-cpu"
	NewGPUImage = "public.ecr.aws/sagemaker/sagemaker-distribution:3.3.0-gpu"
)

// imageGB is the size of an image: those of Workspaces are of the sizes of SageMaker Distribution, all others small.
func imageGB(image string) float64 {
	switch {
	case strings.HasSuffix(image, "-gpu"):
		return 9.85
	case strings.HasSuffix(image, "-cpu"):
		return 3.5
	}
	return 0.01
}

// imageStore is what each node has pulled. Nothing is ever removed from a node while it is there.
type imageStore struct {
	mu    sync.Mutex
	nodes map[string]*nodeImages
}

type nodeImages struct {
	pulling chan struct{} // holds one token: a kubelet pulls one image at a time
	images  []string      // sorted
}

func newImageStore() *imageStore { return &imageStore{nodes: map[string]*nodeImages{}} }

func (s *imageStore) node(name string) *nodeImages {
	n := s.nodes[name]
	if n == nil {
		n = &nodeImages{pulling: make(chan struct{}, 1)}
		s.nodes[name] = n
	}
	return n
}

func (s *imageStore) has(node, image string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := slices.BinarySearch(s.node(node).images, image)
	return found
}

func (s *imageStore) on(node string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.node(node).images)
}

// pull waits for its turn, and for as long as the pull takes unless somebody else has done it meanwhile; own is the time
// without the turn. It says no when ctx ends before: the pull is then begun anew by whoever comes next.
func (s *imageStore) pull(ctx context.Context, node, image string, takes time.Duration) (own time.Duration, ok bool) {
	s.mu.Lock()
	n := s.node(node)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, false
	case n.pulling <- struct{}{}:
	}
	defer func() { <-n.pulling }()
	if s.has(node, image) {
		return 0, true
	}
	if !after(ctx, takes) {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearch(n.images, image)
	n.images = slices.Insert(n.images, at, image)
	return takes, true
}

// forget is told of a node that is gone.
func (s *imageStore) forget(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
}
