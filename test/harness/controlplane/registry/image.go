package registry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// Image is an OCI image for this machine's architecture.
type Image struct {
	manifest []byte
	blobs    map[string][]byte // by digest
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// NewImage makes an image that runs a static program, which is its sh and its true as
// well: with what name it was called the program sees in its first argument. Where
// size is not 0, a layer with as many random bytes follows, which do not compress.
// Equal arguments, seed among them, give equal digests.
func NewImage(program []byte, size int, seed string) (Image, error) {
	contents := [][]file{{{name: "bin/program", data: program}, {name: "bin/sh", link: "program"}, {name: "bin/true", link: "program"}}}
	if size != 0 {
		data := make([]byte, size)
		_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(data) // it never fails
		contents = append(contents, []file{{name: "data", data: data}})
	}
	image := Image{blobs: map[string][]byte{}}
	var layers []descriptor
	var diffIDs []string
	for _, files := range contents {
		layer, err := archive(files)
		if err != nil {
			return Image{}, fmt.Errorf("make a layer of an image: %w", err)
		}
		added := image.add(layerType, layer)
		layers, diffIDs = append(layers, added), append(diffIDs, added.Digest) // nothing is compressed
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/bin/program"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffIDs},
	})
	if err != nil {
		return Image{}, fmt.Errorf("make the configuration of an image: %w", err)
	}
	image.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": image.add(configType, config), "layers": layers,
	})
	if err != nil {
		return Image{}, fmt.Errorf("make the manifest of an image: %w", err)
	}
	return image, nil
}

// Digest names the image: "sha256:" and 64 hex digits.
func (i Image) Digest() string { return digest(i.manifest) }

func (i Image) add(mediaType string, blob []byte) descriptor {
	name := digest(blob)
	i.blobs[name] = blob
	return descriptor{MediaType: mediaType, Digest: name, Size: len(blob)}
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// file is a symbolic link if link is not empty.
type file struct {
	name string
	data []byte
	link string
}

func archive(files []file) ([]byte, error) {
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.data)), Linkname: f.link}
		if f.link != "" {
			header.Typeflag = tar.TypeSymlink
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := writer.Close() // it writes the end
	return layer.Bytes(), err
}
