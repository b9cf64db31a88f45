package manifest

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/phrase"
)

// Options say how files are read. By the zero value they are a whole cluster, and what is no object is passed over.
type Options struct {
	// Namespace is that of namespaced objects that name none; empty: default.
	Namespace string
	// Ignore are globs of the files and folders that are left out of folders; see ignored.
	Ignore []string
	// Strict refuses documents that are no objects, and second definitions of an object.
	Strict bool
	// Part tells that the cluster holds more than these files.
	Part bool
}

// Reading is what files hold.
type Reading struct {
	// Snapshot, which is never nil, and Objects are what could be read. Objects of kinds that a Snapshot holds have no spec
	// and no status left, so that a large folder is not in memory twice.
	Snapshot *cluster.Snapshot
	Objects  []Object
	// Refused are paths that were given and cannot be read, and with Strict all that is no object.
	Refused []error
	// Broken are files of folders that cannot be read, and documents that are meant as objects that rules go by.
	Broken []error
	// Notes say what was passed over, what is defined more than once, and which namespace was taken.
	Notes []string
}

// Err is all that could not be read; nil when all could.
func (r *Reading) Err() error { return join(slices.Concat(r.Refused, r.Broken)) }

// Load reads what can be read of all paths, in the order of Objects, and tells the rest.
func Load(paths []string, stdin io.Reader, options Options) *Reading {
	kinds := newKinds()
	r := &reader{Options: options, stdin: stdin, see: func(o *Object) {
		if o.keep = kinds.read(*o); o.keep != nil {
			delete(o.Object, "spec")
			delete(o.Object, "status")
		}
	}}
	found := r.all(paths)
	s, broken, twice := found.keepAll(kinds, options)
	reading := &Reading{Snapshot: s, Objects: found.objects, Refused: found.refused, Broken: append(found.broken, broken...)}
	reading.Notes = append(passedNotes(found.passed), found.namespaceNotes(options)...)
	if len(twice) > 0 {
		reading.Notes = append(reading.Notes, fmt.Sprintf("%s defined more than once, in different ways: each definition is judged, and what others depend on counts as unknown; to audit one environment at a time, render it (kubectl kustomize overlays/NAME | warmpool audit -f -) or leave the others out (--ignore): %s",
			phrase.Count(len(twice), "object"), phrase.Some(twice, 5)))
	}
	return reading
}

// reader reads files; see is called once for each object, for several at the same time.
type reader struct {
	Options
	stdin io.Reader
	see   func(*Object)
}

// contents are what one file holds, or several.
type contents struct {
	objects         []Object
	refused, broken []error
	passed          map[reason][]string // files
	// patches are the files that kustomizations name as such.
	patches []string
}

func (c *contents) pass(why reason, file string) {
	if c.passed == nil {
		c.passed = map[reason][]string{}
	}
	if !slices.Contains(c.passed[why], file) {
		c.passed[why] = append(c.passed[why], file)
	}
}

func (c *contents) add(more *contents) {
	c.objects = append(c.objects, more.objects...)
	c.refused = append(c.refused, more.refused...)
	c.broken = append(c.broken, more.broken...)
	c.patches = append(c.patches, more.patches...)
	for why, files := range more.passed {
		for _, file := range files {
			c.pass(why, file)
		}
	}
}

// all reads what can be read, and tells what cannot.
func (r *reader) all(paths []string) *contents {
	r.Namespace = orDefault(r.Namespace)
	files, errs := r.expand(paths)
	all := &contents{refused: errs}
	// Several at once, and as many as one after the other would be: what begins after too many errors is left out below.
	read := make([]*contents, len(files))
	var refused atomic.Int64
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		if refused.Load() >= maxErrors {
			break
		}
		group.Go(func() error {
			read[i] = r.file(file)
			refused.Add(int64(len(read[i].refused)))
			return nil
		})
	}
	_ = group.Wait() // errors are in read
	for _, c := range read {
		if len(all.refused) >= maxErrors || c == nil {
			break
		}
		all.add(c)
	}
	all.leaveOutPatches()
	placeByDefinitions(all.objects, r.Namespace)
	all.findTwice(r.Strict)
	if len(all.objects)+len(all.refused)+len(all.broken) == 0 && !slices.ContainsFunc(files, func(s source) bool { return !s.given }) {
		all.refused = append(all.refused, all.nothing())
	}
	return all
}

// nothing is the error where all that was given are files, and none holds an object.
func (c *contents) nothing() error {
	for _, r := range reasons {
		if files := c.passed[r.reason]; len(files) > 0 {
			return fmt.Errorf("%s: no Kubernetes object to read (%s)", files[0], r.text)
		}
	}
	return nil
}

func (c *contents) leaveOutPatches() {
	if len(c.patches) == 0 {
		return
	}
	c.objects = slices.DeleteFunc(c.objects, func(o Object) bool {
		isPatch := slices.Contains(c.patches, filepath.Clean(o.File))
		if isPatch {
			c.pass(patch, o.File)
		}
		return isPatch
	})
}

// namespaceNotes say which namespace objects without one were taken for.
func (c *contents) namespaceNotes(options Options) []string {
	assumed := 0
	for _, o := range c.objects {
		if o.assumed {
			assumed++
		}
	}
	if assumed == 0 || options.Namespace != "" {
		return nil
	}
	return []string{fmt.Sprintf("%s without a namespace, taken to be in namespace default, as kubectl apply would have it; give -n NAMESPACE for another", phrase.Count(assumed, "object"))}
}

// keepAll makes a Snapshot of what was read, in the order of the objects; twice names the objects whose definitions differ.
func (c *contents) keepAll(kinds kinds, options Options) (s *cluster.Snapshot, broken []error, twice []string) {
	for i := range c.objects {
		o := &c.objects[i]
		if o.keep == nil {
			continue
		}
		err := o.keep(o.earlier)
		o.keep = nil
		var other *twiceError
		switch {
		case errors.As(err, &other):
			twice = other.addTo(twice)
		case err != nil && !options.Strict && templateLine(o.position.doc.text) > 0:
			c.pass(template, o.File)
		case err != nil:
			broken = append(broken, err)
		}
	}
	s, errs := kinds.snapshot(c.objects, options.Part)
	return s, append(broken, errs...), twice
}
