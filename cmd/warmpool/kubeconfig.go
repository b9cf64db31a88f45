package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeFlags say which cluster a command works with, as kubectl's flags of these names do.
type kubeFlags struct {
	kubeconfig, context string
}

func (f *kubeFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	flags.StringVar(&f.context, "context", "", "The name of the kubeconfig context to use")
}

// given tells that a live cluster was asked for.
func (f *kubeFlags) given() bool { return f.kubeconfig != "" || f.context != "" }

// restConfig goes by the flags, else by KUBECONFIG, the user's kubeconfig, or the Pod that this runs in.
func (f *kubeFlags) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	restConfig, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("no cluster: %w; give --kubeconfig FILE, or set KUBECONFIG", err)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return restConfig, nil
}
