package prepull

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"warmpool.sh/webhook/config"
)

// Resolution is what an image name of a template stands for.
type Resolution struct {
	// Image is the complete reference; empty when it is not known.
	Image string
	// Problem says why Image is empty, as a clause about the name.
	Problem string
	// ByController tells that the Workspace controller makes no image reference of a name that is one: its Workspaces cannot
	// start, and nothing that a placeholder pulls would change that.
	ByController bool
}

// Resolve completes an image name as the Workspace controller does: short names by imageAliases, then names without a slash
// by imageRegistry, where the tag is latest unless there is one, or a digest. To the controller all before the first colon
// is the name, so that a registry with a port counts as a name without a slash.
func Resolve(image string, workspaces *config.Workspaces) Resolution {
	if alias, ok := workspaces.ImageAliases[image]; ok {
		image = alias
	}
	registry := workspaces.ImageRegistry
	name, tag, tagged := strings.Cut(image, ":")
	resolved := image
	switch {
	case image == "":
		return Resolution{Problem: "is empty: name an image, for warmpool cannot know the Workspace controller's own"}
	case registry == nil && !strings.Contains(image, "/"):
		return Resolution{Problem: "is a bare name: set workspaces.imageRegistry or imageAliases"}
	case registry == nil, *registry == "", strings.Contains(name, "/"): // stays as it is
	case tagged:
		resolved = *registry + "/" + name + ":" + tag
	default:
		resolved = *registry + "/" + name + ":latest"
	}
	_, err := reference.ParseNormalizedNamed(resolved)
	if err == nil {
		return Resolution{Image: resolved}
	}
	if _, asWritten := reference.ParseNormalizedNamed(image); asWritten != nil || resolved == image {
		return Resolution{Problem: fmt.Sprintf("is no image reference: %v", err)}
	}
	fix := "correct its --application-images-registry, and workspaces.imageRegistry"
	if strings.Contains(image, "/") {
		fix = "it takes a registry with a port for a name without a registry; use one without a port, or run it without --application-images-registry"
	}
	return Resolution{ByController: true, Problem: fmt.Sprintf("becomes %.200q in the Workspace controller, which is no image reference: %s", resolved, fix)}
}
