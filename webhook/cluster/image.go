package cluster

import (
	"path"
	"strings"
)

// IsPauseImage tells whether an image is a pause image, by its name: it does nothing but hold a place.
func IsPauseImage(image string) bool {
	name := path.Base(image)
	if at := strings.IndexAny(name, ":@"); at >= 0 {
		name = name[:at]
	}
	return name == "pause" || strings.HasPrefix(name, "pause-")
}
