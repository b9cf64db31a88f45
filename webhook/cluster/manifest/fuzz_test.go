package manifest_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"warmpool.sh/webhook/cluster/manifest"
)

// Whatever the bytes, reading ends, does not panic, and gives either an error or a Snapshot.
func FuzzSnapshot(f *testing.F) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range cases {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range archive.Files {
			f.Add(section.Data)
		}
	}
	f.Add(bytes.Repeat([]byte(`{"kind":"List","apiVersion":"v1","items":[`), 2000))
	f.Add([]byte("a: &a [1,1,1]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		snapshot, objects, err := manifest.Read([]string{"-"}, bytes.NewReader(data))
		if (err == nil) != (snapshot != nil) {
			t.Fatalf("error %v and snapshot %v", err, snapshot)
		}
		for _, o := range objects {
			if o.GetKind() == "" || o.GetAPIVersion() == "" || o.Document < 1 {
				t.Fatalf("incomplete object %s", o)
			}
			if snapshot.Nodes.Get(o.GetName()) == nil && o.GetKind() == "Node" && o.GetAPIVersion() == "v1" {
				t.Fatalf("%s is not in the Snapshot", o)
			}
		}
	})
}
