package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// findTwice marks objects that are defined before. Strict leaves them out and reports them: which is meant, no one knows.
func (c *contents) findTwice(strict bool) {
	type identity struct {
		kind            schema.GroupKind
		namespace, name string
	}
	first := map[identity]int{}
	once := c.objects[:0:len(c.objects)]
	for i := range c.objects {
		o := c.objects[i]
		if o.GetName() != "" {
			id := identity{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
			at, twice := first[id]
			switch {
			case twice && strict:
				c.refused = append(c.refused, fmt.Errorf("%s: the same object is in %s; remove one of them",
					o, place(once[at].File, once[at].Document)))
				continue
			case twice:
				earlier := once[at]
				o.earlier = &earlier
			default:
				first[id] = len(once)
			}
		}
		once = append(once, o)
	}
	c.objects = once
}

// twiceError says that an object has another definition, which differs.
type twiceError struct{ object, earlier Object }

func (e *twiceError) Error() string {
	return fmt.Sprintf("%s is defined in another way in %s", e.object, place(e.earlier.File, e.earlier.Document))
}

// addTo adds the object and its files to a list of such, in which other definitions of it may be already.
func (e *twiceError) addTo(twice []string) []string {
	start := e.object.title() + " in "
	for i := range twice {
		if strings.HasPrefix(twice[i], start) {
			twice[i] += ", " + e.object.File
			return twice
		}
	}
	return append(twice, start+e.earlier.File+", "+e.object.File)
}
