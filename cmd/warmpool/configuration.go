package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/lastseen"
	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// Where the configuration is in a cluster.
const (
	ownNamespace      = "warmpool-system"
	configMapName     = "warmpool-config"
	configMapKey      = "warmpool.yaml"
	whereToFindConfig = "give --config FILE, or a cluster that holds a " + config.Kind + " or the ConfigMap " + configMapName
)

// surroundings are what an object is judged by: a configuration and the facts of a cluster.
type surroundings struct {
	configFile string
	clusterDir string
	kube       kubeFlags
	manifests  manifestFlags
	// ownData, once read, gives the data of a ConfigMap in warmpool's own namespace; nil: there is none.
	ownData func(name string) (map[string]string, error)
}

// read gives the configuration and the facts: of the folder --cluster, or of the live cluster that --kubeconfig or
// --context name; with neither, nothing is known of the cluster and the configuration must be given.
func (s *surroundings) read(cmd *cobra.Command) (*config.WarmPoolConfiguration, *cluster.Snapshot, error) {
	askedLive := s.kube.given()
	switch {
	case s.clusterDir != "" && askedLive:
		return nil, nil, errors.New("give --cluster or --kubeconfig/--context, not both")
	case s.clusterDir != "":
		return s.readFolder(cmd)
	case askedLive:
		return s.readLive(cmd.Context())
	}
	cfg, err := s.configFrom(func() ([]byte, error) { return nil, nil })
	return cfg, &cluster.Snapshot{}, err
}

func (s *surroundings) readFolder(cmd *cobra.Command) (*config.WarmPoolConfiguration, *cluster.Snapshot, error) {
	reading, err := s.manifests.loadWhole(s.clusterDir)
	if err != nil {
		return nil, nil, err
	}
	printNotes(cmd, reading.Notes)
	facts, objects := reading.Snapshot, reading.Objects
	if err := addLastSeen(facts, objects); err != nil {
		return nil, nil, err
	}
	s.ownData = func(name string) (map[string]string, error) { return ownDataIn(objects, name) }
	cfg, err := s.configFrom(func() ([]byte, error) { return configIn(objects) })
	return cfg, facts, err
}

func ownDataIn(objects []manifest.Object, name string) (map[string]string, error) {
	for _, object := range objects {
		if isOwnConfigMap(object, name) {
			configMap, err := manifest.Typed[corev1.ConfigMap](object)
			if err != nil {
				return nil, err
			}
			return configMap.Data, nil
		}
	}
	return nil, nil
}

// addLastSeen adds what the folder says of nodes that are gone.
func addLastSeen(facts *cluster.Snapshot, objects []manifest.Object) error {
	for _, object := range objects {
		if isOwnConfigMap(object, lastseen.Name) {
			configMap, err := manifest.Typed[corev1.ConfigMap](object)
			if err != nil {
				return err
			}
			facts.LastSeen = lastseen.Update(facts.LastSeen, configMap.Data)
		}
	}
	return nil
}

func (s *surroundings) readLive(ctx context.Context) (*config.WarmPoolConfiguration, *cluster.Snapshot, error) {
	restConfig, err := s.kube.restConfig()
	if err != nil {
		return nil, nil, err
	}
	facts, err := live.Read(ctx, restConfig, func(*appsv1.Deployment) bool { return true })
	if err != nil {
		return nil, nil, fmt.Errorf("read the cluster: %w", err)
	}
	client, err := corev1client.NewForConfig(restConfig)
	if err != nil {
		return nil, nil, err
	}
	facts.LastSeen = lastseen.Read(ctx, client, ownNamespace)
	s.ownData = func(name string) (map[string]string, error) {
		configMap, err := client.ConfigMaps(ownNamespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return configMap.Data, nil
	}
	cfg, err := s.configFrom(func() ([]byte, error) {
		configMap, err := client.ConfigMaps(ownNamespace).Get(ctx, configMapName, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read the configuration (or give --config FILE): %w", err)
		}
		return []byte(configMap.Data[configMapKey]), nil
	})
	return cfg, facts, err
}

// configFrom loads --config, else what the cluster holds; no data means that it holds none.
func (s *surroundings) configFrom(cluster func() ([]byte, error)) (*config.WarmPoolConfiguration, error) {
	read, source := cluster, "the cluster"
	if s.configFile != "" {
		read, source = func() ([]byte, error) { return os.ReadFile(s.configFile) }, s.configFile
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	if len(data) == 0 && s.configFile == "" {
		return nil, errors.New("no configuration: " + whereToFindConfig)
	}
	cfg, err := config.Load(data, policy.IDs())
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", source, err)
	}
	return cfg, nil
}

// configIn finds the configuration among the objects of a folder: written as such, or in the ConfigMap that serve uses.
// A ConfigMap of the same name in another namespace is none: serve would not read it.
func configIn(objects []manifest.Object) ([]byte, error) {
	var found []byte
	var where string
	for _, object := range objects {
		var data []byte
		switch {
		case object.GetAPIVersion() == config.APIVersion && object.GetKind() == config.Kind:
			var err error
			if data, err = yaml.Marshal(object.Object); err != nil {
				return nil, fmt.Errorf("%s: %w", object, err)
			}
		case isOwnConfigMap(object, configMapName):
			configMap, err := manifest.Typed[corev1.ConfigMap](object)
			if err != nil {
				return nil, err
			}
			data = []byte(configMap.Data[configMapKey])
		default:
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("two configurations, in %s and in %s: say which by --config FILE", where, object)
		}
		found, where = data, object.String()
	}
	return found, nil
}

// isOwnConfigMap tells whether the object is warmpool's own ConfigMap of that name.
func isOwnConfigMap(object manifest.Object, name string) bool {
	return object.GetAPIVersion() == "v1" && object.GetKind() == "ConfigMap" && object.GetName() == name && object.GetNamespace() == ownNamespace
}

// warnExpired says on standard error which exemptions no longer apply.
func warnExpired(cfg *config.WarmPoolConfiguration, cmd *cobra.Command) {
	for _, exemption := range cfg.Expired(time.Now()) {
		cmd.PrintErrf("Warning: the exemption of %s/%s ended on %s and no longer applies\n", exemption.Namespace, exemption.Name, exemption.Until)
	}
}
