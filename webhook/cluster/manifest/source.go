package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	stdinPath = "-"
	// StandardInput is the File of objects that were read there.
	StandardInput = "standard input"
	// maxBytes bounds one file; etcd takes objects of 1.5 MiB.
	maxBytes = 10 << 20
)

// extensions are the ends of the names of manifests in a folder, as kubectl has them.
var extensions = []string{".json", ".yaml", ".yml"}

// source is a file to read. given tells that it was named itself, and not found in a folder.
type source struct {
	path  string
	given bool
}

// expand turns the arguments into files, in order; "-" stays "-".
func (r *reader) expand(paths []string) (files []source, errs []error) {
	if len(paths) == 0 {
		return nil, []error{errors.New("no files given; name a file, a folder, or - for standard input")}
	}
	for _, glob := range r.Ignore {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, []error{fmt.Errorf("ignore %q: %w; write it as *.tpl.yaml or charts/*/templates, for example", glob, err)}
		}
	}
	for _, name := range paths {
		if name == stdinPath {
			if slices.Contains(files, source{stdinPath, true}) {
				errs = append(errs, errors.New("standard input (-) can be read only once; remove the second -"))
				continue
			}
			files = append(files, source{name, true})
			continue
		}
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s: no such file or folder; check the path", name))
		case err != nil:
			errs = append(errs, err)
		case !info.IsDir():
			files = append(files, source{name, true})
		default:
			found, err := r.manifestsIn(name)
			files = append(files, found...)
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return files, errs
}

// ignored tells whether a file or folder is left out: by a glob without a slash that takes its name, or by one that takes its
// path from the folder that was given.
func (r *reader) ignored(name string) bool {
	return slices.ContainsFunc(r.Ignore, func(glob string) bool {
		glob = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "**/"), "/")
		target := name
		if !strings.Contains(glob, "/") {
			target = path.Base(name)
		}
		matches, _ := path.Match(glob, target) // expand has refused what is no glob
		return matches
	})
}

// manifestsIn lists the manifests of a folder and its subfolders. Hidden folders are left out: they are other
// programs' (.git, .github), or the second view of the files that Kubernetes mounts from a ConfigMap (..data).
func (r *reader) manifestsIn(folder string) ([]source, error) {
	var files []source
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || r.ignored(name)):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(extensions, filepath.Ext(name)) || r.ignored(name):
			return nil
		}
		path := filepath.Join(folder, name)
		// Stat follows links, as those of a mounted ConfigMap. A named pipe would block; what cannot be read, reading tells.
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil
		}
		files = append(files, source{path: path})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no manifest in this folder; it needs files that end in %s", folder, strings.Join(extensions, ", "))
	}
	return files, nil
}

// content reads one file as UTF-8, whatever its byte order mark says; at most maxBytes.
func content(file string, stdin io.Reader) ([]byte, error) {
	reader := stdin
	if file != stdinPath {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		defer opened.Close() //nolint:errcheck // nothing was written
		if info, err := opened.Stat(); err == nil && info.Size() > maxBytes {
			return nil, tooLarge(file)
		}
		reader = opened
	}
	if reader == nil {
		return nil, nil
	}
	text := transform.NewReader(io.LimitReader(reader, maxBytes+1), unicode.BOMOverride(unicode.UTF8.NewDecoder()))
	data, err := io.ReadAll(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", display(file), err)
	}
	if len(data) > maxBytes {
		return nil, tooLarge(file)
	}
	return data, nil
}

func tooLarge(file string) error {
	return fmt.Errorf("%s: larger than %d MiB; split it into several files", display(file), maxBytes>>20)
}

func display(file string) string {
	if file == stdinPath {
		return StandardInput
	}
	return file
}
