package prepull_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"

	"warmpool.sh/webhook/prepull"
)

func TestImageLabel(t *testing.T) {
	// printf %s reg.example/nb:1 | sha256sum
	assert.Equal(t, "image.warmpool.sh/381743501dc2a4a6", prepull.ImageLabel("reg.example/nb:1"))
	for _, image := range []string{"", "reg.example/nb:2", "reg.example/" + strings.Repeat("n", 4000), "\xff"} {
		label := prepull.ImageLabel(image)
		assert.Empty(t, validation.IsQualifiedName(label), image)
		assert.NotEqual(t, prepull.ImageLabel("reg.example/nb:1"), label)
	}
}
