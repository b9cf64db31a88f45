package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"k8s.io/cli-runtime/pkg/resource"
)

const (
	stdinPath = "-"
	// StandardInput is the File of objects that were read there.
	StandardInput = "standard input"
	// maxBytes bounds one file; etcd takes objects of 1.5 MiB.
	maxBytes = 10 << 20
)

// expand turns the arguments into files, in order; "-" stays "-".
func expand(paths []string) (files []string, errs []error) {
	if len(paths) == 0 {
		return nil, []error{errors.New("no files given; name a file, a folder, or - for standard input")}
	}
	for _, path := range paths {
		if path == stdinPath {
			if slices.Contains(files, stdinPath) {
				errs = append(errs, errors.New("standard input (-) can be read only once; remove the second -"))
				continue
			}
			files = append(files, path)
			continue
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s: no such file or folder; check the path", path))
		case err != nil:
			errs = append(errs, err)
		case !info.IsDir():
			files = append(files, path)
		default:
			found, err := manifestsIn(path)
			files = append(files, found...)
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return files, errs
}

// manifestsIn lists the manifests of a folder and its subfolders. Hidden folders are left out: they are other
// programs' (.git, .github), or the second view of the files that Kubernetes mounts from a ConfigMap (..data).
func manifestsIn(folder string) ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		path := filepath.Join(folder, name)
		if !slices.Contains(resource.FileExtensions, filepath.Ext(name)) {
			return nil
		}
		// Stat follows links, as those of a mounted ConfigMap. A named pipe would block.
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return err
		}
		files = append(files, path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no manifest in this folder; it needs files that end in %s", folder, strings.Join(resource.FileExtensions, ", "))
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
