package cpa

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/phrase"
)

// Source is where CPA takes its parameters from, and what it finds there.
type Source struct {
	*Params // nil: unknown or not taken
	// ConfigMap has them; nil: CPA's own flags do.
	ConfigMap *corev1.ConfigMap
	// Path and Value are those of the parameters in that object.
	Path  *field.Path
	Value string
	// Fault says why CPA does not take the parameters, Unknown why that cannot be said.
	Fault, Unknown string
}

// source looks for the parameters where CPA does: in the ConfigMap, or else in the defaults that it would make one of.
func (s *Scaler) source(configMaps cluster.Facts[corev1.ConfigMap]) Source {
	name := s.Flags["configmap"]
	key := s.Works + "/" + name
	p := Source{Path: s.Args, Value: "--configmap=" + name}
	defaults, hasDefaults := s.Flags["default-params"]
	unreadable := configMaps.Unreadable("ConfigMaps", "ConfigMap "+key, key)
	switch configMap := configMaps.Get(key); {
	case name == "" || s.Works == "": // CPA does not start
	case strings.Contains(key, "$("):
		p.Unknown = "the value of a variable in " + key
	case configMap != nil:
		p.ConfigMap, p.Path = configMap, field.NewPath("data")
		p.Value = strings.Join(slices.Sorted(maps.Keys(configMap.Data)), ", ")
		if mode := p.read(configMap.Data); mode != "" {
			p.Path, p.Value = p.Path.Child(mode), clip(configMap.Data[mode])
		}
	case unreadable != "":
		p.Unknown = unreadable
	case hasDefaults:
		p.Value = "--default-params=" + clip(defaults)
		if data, err := DefaultData(defaults); err == nil {
			p.read(data)
		}
	case !configMaps.Whole():
		p.Unknown = "ConfigMap " + key + " is not among these files"
	default:
		p.Fault = "there is no ConfigMap " + key
	}
	return p
}

// read takes parameters from a ConfigMap's data, and returns their mode where there is one.
func (p *Source) read(data map[string]string) (mode string) {
	p.Params, mode, p.Fault = Parse(data)
	return mode
}

// DefaultData is the data of the ConfigMap that CPA makes of --default-params.
func DefaultData(text string) (map[string]string, error) {
	var byMode map[string]any
	if err := json.Unmarshal([]byte(text), &byMode); err != nil {
		return nil, errors.New(jsonFault(err))
	}
	data := map[string]string{}
	for mode, value := range byMode {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		data[mode] = string(encoded)
	}
	return data, nil
}

// jsonFault says in the words of JSON what CPA could not read.
func jsonFault(err error) string {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s: got %s, want %s", mismatch.Field, clip(mismatch.Value), mismatch.Type)
	}
	return "no JSON: " + clip(err.Error())
}

func clip(s string) string { return phrase.Cut(s, 300) }
