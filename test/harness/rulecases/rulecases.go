// Package rulecases reads the cases of rules, webhook/policy/testdata/<rule-id>/<allow|deny|mutate>-<case>.txtar. Their
// sections are
//
//	object.yaml   the Pod or Deployment; without it the rule audits the cluster
//	old.yaml      what it was before an update, if it is one
//	config.yaml   where that of testdata does not serve
//	cluster.yaml  where neither that of the rule's folder nor that of testdata serves
//	changes.yaml  objects that come to the cluster of the rule's folder, or stand in it in place of others of their name
//	part.yaml     instead of cluster.yaml: a part of a cluster, as "warmpool audit -f" takes files
//	want.json     the patch of the rule alone, for mutate
//	want.txt      the findings of the rule alone afterwards, for deny (and mutate, where something is left)
package rulecases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// Case is one case of a rule.
type Case struct {
	Archive *txtar.Archive
	// Sections by their names. config.yaml and cluster.yaml are always there; Own tells whether testdata's serve.
	Sections map[string]string
	Own      map[string]bool
	// Config is read of config.yaml.
	Config *config.WarmPoolConfiguration
}

// Read reads the file of a case.
func Read(t testing.TB, file string) *Case {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	c := &Case{Archive: archive, Sections: map[string]string{}, Own: map[string]bool{}}
	for _, f := range archive.Files {
		c.Sections[f.Name], c.Own[f.Name] = string(f.Data), true
	}
	folder := filepath.Dir(file)
	for _, name := range []string{"config.yaml", "cluster.yaml"} {
		if !c.Own[name] {
			c.Sections[name], c.Own[name] = inherited(t, folder, name)
		}
	}
	if part, ok := c.Sections["part.yaml"]; ok {
		c.Sections["cluster.yaml"] = part
	}
	if changes, ok := c.Sections["changes.yaml"]; ok {
		c.Sections["cluster.yaml"], c.Own["cluster.yaml"] = changed(t, c.Sections["cluster.yaml"], changes), true
	}
	c.Config, err = config.Load([]byte(c.Sections["config.yaml"]), policy.IDs())
	require.NoError(t, err)
	return c
}

// inherited is the file of the rule's folder, else that of testdata.
func inherited(t testing.TB, folder, name string) (content string, own bool) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if own = err == nil; !own {
		data, err = os.ReadFile(filepath.Join(filepath.Dir(folder), name))
	}
	require.NoError(t, err)
	return string(data), own
}

// changed are the documents of a cluster with others in the place of those of the same kind, namespace and name, or after
// them.
func changed(t testing.TB, base, changes string) string {
	t.Helper()
	var all []string
	at := map[string]int{}
	for _, document := range append(strings.Split(base, "---\n"), strings.Split(changes, "---\n")...) {
		var object struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		key := object.Kind + " " + object.Metadata.Namespace + "/" + object.Metadata.Name
		if i, ok := at[key]; ok {
			all[i] = document
			continue
		}
		at[key] = len(all)
		all = append(all, document)
	}
	return strings.Join(all, "---\n")
}

// Alone turns all rules off but one.
func (c *Case) Alone(rule string) {
	if c.Config.Rules == nil {
		c.Config.Rules = map[string]config.Action{}
	}
	for _, id := range policy.IDs() {
		if id != rule {
			c.Config.Rules[id] = config.Off
		}
	}
}

// Facts are those of the cluster.
func (c *Case) Facts(t testing.TB) *cluster.Snapshot {
	t.Helper()
	part := c.Own["part.yaml"]
	reading := manifest.Load([]string{"-"}, strings.NewReader(c.Sections["cluster.yaml"]), manifest.Options{Part: part, Strict: !part})
	require.NoError(t, reading.Err())
	return reading.Snapshot
}
