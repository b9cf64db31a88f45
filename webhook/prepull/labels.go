package prepull

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	// WarmLabel is the label of a placeholder pod whose pre-pull has ended: WarmTrue or WarmFailed. While it is absent the
	// pull is still under way.
	WarmLabel = "warmpool.sh/warm"
	// WarmTrue tells that all images are on the pod's node.
	WarmTrue = "true"
	// WarmFailed tells that the pull keeps failing.
	WarmFailed = "failed"
	// ImageLabelPrefix begins the keys of the labels that ImageLabel makes.
	ImageLabelPrefix = "image.warmpool.sh/"
)

// ImageLabel is the key of the label, of value "true", that a placeholder pod has once the image is on its node. It ends
// in the first 16 hex digits of the SHA-256 of the image as it stands in the pod: a reference has characters, and a
// length, that no label may have.
func ImageLabel(image string) string {
	sum := sha256.Sum256([]byte(image))
	return ImageLabelPrefix + hex.EncodeToString(sum[:8])
}
