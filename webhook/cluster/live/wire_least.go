package live

import (
	"bytes"
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	kjson "sigs.k8s.io/json"
)

func leastOfJSON(event []byte) ([]byte, error) {
	type metadata struct {
		Namespace         string `json:"namespace,omitempty"`
		Name              string `json:"name,omitempty"`
		UID               string `json:"uid,omitempty"`
		ResourceVersion   string `json:"resourceVersion,omitempty"`
		CreationTimestamp string `json:"creationTimestamp,omitempty"`
		DeletionTimestamp string `json:"deletionTimestamp,omitempty"`
	}
	var all struct {
		Type   string `json:"type"`
		Object struct {
			APIVersion string   `json:"apiVersion"`
			Kind       string   `json:"kind"`
			Metadata   metadata `json:"metadata"`
		} `json:"object"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(event, &all); err != nil {
		return nil, errors.New("an event of a watch is no JSON") // the error might quote it
	}
	type marked struct {
		metadata
		Annotations map[string]string `json:"annotations"`
	}
	return json.Marshal(map[string]any{"type": all.Type, "object": map[string]any{
		"apiVersion": all.Object.APIVersion, "kind": all.Object.Kind, "metadata": marked{all.Object.Metadata, map[string]string{tooLarge: ""}},
	}})
}

var errWire = errors.New("an event of a watch is no protobuf message")

// kept are the fields of a protobuf message, by their numbers; nil: with all that is in them.
type kept map[protowire.Number]kept

// The numbers of fields of a Pod and its ObjectMeta; the latter is field 1 of all kinds.
var (
	ofMetadata = kept{1: nil /* name */, 3: nil /* namespace */, 5: nil /* uid */, 6: nil /* resourceVersion */, 8: nil, 9: nil /* times */}
	ofObject   = kept{metadataField: ofMetadata}
	ofPod      = kept{metadataField: ofMetadata, 2: {10: nil /* nodeName */}, 3: {1: nil /* phase */}}
)

const (
	metadataField    = 1
	annotationsField = 12
)

// protobufPrefix is before each object.
const protobufPrefix = "k8s\x00"

// leastOfProtobuf takes a metav1.WatchEvent: its type (1), and its object (2) in two envelopes, runtime.RawExtension (its 1)
// and runtime.Unknown (kind in 1, object in 2).
func leastOfProtobuf(event []byte) ([]byte, error) {
	object, found := bytes.CutPrefix(field(field(event, 2), 1), []byte(protobufPrefix))
	if !found {
		return nil, errWire
	}
	meta := field(object, 1)
	keep := ofObject
	switch string(field(meta, 2)) {
	case "ConfigMap", "Secret":
		return event, nil // of warmpool's own namespace
	case "Pod":
		keep = ofPod
	}
	content, err := filtered(field(object, 2), keep)
	if err != nil {
		return nil, err
	}
	// A message that is there twice counts as one.
	mark := embed(nil, metadataField, embed(nil, annotationsField, embed(embed(nil, 1, []byte(tooLarge)), 2, nil)))
	unknown := embed(embed([]byte(protobufPrefix), 1, meta), 2, append(content, mark...))
	return embed(embed(nil, 1, field(event, 1)), 2, embed(nil, 1, unknown)), nil
}

func embed(to []byte, number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), message)
}

// field gives the first field of the number that has bytes; nil where there is none.
func field(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		found, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		if message = message[n:]; found == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			return value
		}
		if n = protowire.ConsumeFieldValue(found, kind, message); n < 0 {
			return nil
		}
		message = message[n:]
	}
	return nil
}

// filtered leaves of a message what is to be kept.
func filtered(message []byte, keep kept) (left []byte, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, errWire
		}
		of, wanted := keep[number]
		switch {
		case !wanted:
		case of == nil:
			left = append(left, message[:n]...)
		case kind != protowire.BytesType:
			return nil, errWire
		default:
			inner, err := filtered(field(message[:n], number), of)
			if err != nil {
				return nil, err
			}
			left = embed(left, number, inner)
		}
		message = message[n:]
	}
	return left, nil
}
