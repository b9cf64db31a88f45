package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/sizing"
)

// roomFor is where a pod of the object finds room in its pool.
type roomFor struct {
	request corev1.ResourceList
	// fits and fails are the shapes that the pod may land on, with and without room for it.
	fits, fails []*sizing.Shape
	// unseen are instance types that it may land on and that no node has shown yet; not found out where something fits.
	unseen []string
	// problems are facts that could not be read, and how they were counted.
	problems []string
	// unknown says why nothing can be said; empty when something can.
	unknown string
}

// room judges the object's effective request against the shapes of its pool. The object has a pool.
func (o *Object) room() *roomFor {
	if o.judged.room == nil {
		o.judged.room = o.findRoom()
	}
	return o.judged.room
}

func (o *Object) findRoom() *roomFor {
	sizes := o.e.sizes.Pool(o.pool)
	r := &roomFor{request: o.Request(), unknown: sizes.Unknown, problems: sizes.Problems}
	for _, shape := range sizes.Shapes {
		switch {
		case !shape.Hosts(o.Spec):
		case len(shape.Shortfalls(r.request)) == 0:
			r.fits = append(r.fits, shape)
		default:
			r.fails = append(r.fails, shape)
		}
	}
	if len(r.fits) == 0 {
		r.unseen = o.unseenTypes(sizes.Shapes)
	}
	if r.unknown == "" && len(r.fits)+len(r.fails) == 0 {
		r.unknown = fmt.Sprintf("no node of pool %s has been seen that the pod may land on", o.pool)
	}
	return r
}

// unseenTypes are the instance types that the pod may land on and that none of the shapes is of. A node that does not say
// its type may be of any, and configured numbers stand for all.
func (o *Object) unseenTypes(shapes []*sizing.Shape) []string {
	seen := map[string]bool{}
	for _, shape := range shapes {
		seen[shape.InstanceType] = true
	}
	if seen[""] {
		return nil
	}
	return slices.DeleteFunc(o.Pool.AdmittedInstanceTypes(o.Spec), func(t string) bool { return seen[t] })
}

func (r *roomFor) unseenText() string {
	return "sizing: no node has been seen of " + strings.Join(r.unseen, ", ")
}

// nearest is the shape without room that comes closest: the fewest resources short, then the most of the first of them.
func (r *roomFor) nearest() *sizing.Shape {
	return slices.MinFunc(r.fails, func(a, b *sizing.Shape) int {
		sa, sb := a.Shortfalls(r.request), b.Shortfalls(r.request)
		return cmp.Or(
			cmp.Compare(len(sa), len(sb)),
			cmp.Compare(sa[0].Resource, sb[0].Resource),
			sb[0].Available.Cmp(sa[0].Available),
		)
	})
}

// name of a shape in messages: its instance type, with a node where nodes of the type differ in their DaemonSets.
func (r *roomFor) name(shape *sizing.Shape) string {
	return shape.NameAmong(slices.Concat(r.fits, r.fails))
}

// names of shapes, in their order.
func (r *roomFor) names(shapes []*sizing.Shape) string {
	var list []string
	for _, s := range shapes {
		list = append(list, r.name(s))
	}
	return strings.Join(list, ", ")
}

// excess is by how much the request is above the most that any shape without room has of the resource, in thousandths.
func (r *roomFor) excess(name corev1.ResourceName) int64 {
	var most *resource.Quantity
	for _, shape := range r.fails {
		if offer, known := shape.Offers[name]; known && (most == nil || offer.Available.Cmp(*most) > 0) {
			most = &offer.Available
		}
	}
	over := r.request[name].DeepCopy()
	over.Sub(*most)
	if over.Cmp(*resource.NewQuantity(math.MaxInt64/1000, resource.DecimalSI)) > 0 {
		return math.MaxInt64
	}
	return over.MilliValue()
}

// shortfalls reports for each resource that is short what is asked for, what there is, and how that was computed. Where
// nodes of other types may have room, it is only a warning.
func (o *Object) shortfalls(r *roomFor) {
	shape := r.nearest()
	others := ""
	if len(r.fails) > 1 {
		others = "; no room either on " + r.names(slices.DeleteFunc(slices.Clone(r.fails), func(s *sizing.Shape) bool { return s == shape }))
	}
	for _, s := range shape.Shortfalls(r.request) {
		over := s.Requested.DeepCopy()
		over.Sub(s.Available)
		f := o.invalid(requestPath(o, s.Resource), s.Requested.String(), "%s %s requested, %s available on %s (%s short): %s allocatable (%s)%s%s",
			s.Resource, s.Requested.String(), s.Available.String(), r.name(shape), over.String(), s.Allocatable.String(), origin(o, shape, s.Node), daemonsPart(&s), others).
			withKey("size " + string(s.Resource)).withAmount(r.excess(s.Resource))
		f.short = &short{s.Resource, s.Requested}
		if s.Available.Sign() <= 0 {
			f.withFix("Nothing of it is left on these nodes: use a larger instance type, or let fewer or smaller DaemonSets run there.")
		} else {
			f.withFix("Request at most %s %s for the pod as a whole (largest init step, or all containers and sidecars, and overhead).", s.Resource, s.Available.String())
		}
		if len(r.unseen) > 0 {
			f.atMostWarn().milder(SeverityWarning)
		}
	}
}

// short is a resource of which no node has enough.
type short struct {
	resource  corev1.ResourceName
	requested resource.Quantity
}

// before tells whether the old object of an update had no room either, and asked for no less of the resource.
func (s *short) before(old *Object) bool {
	if old.Pool == nil || old.fit().Conflict {
		return false
	}
	r := old.room()
	return r.unknown == "" && len(r.fits) == 0 && len(r.unseen) == 0 && s.requested.Cmp(r.request[s.resource]) <= 0
}

// origin says where the allocatable of a shape was read.
func origin(o *Object, shape *sizing.Shape, node string) string {
	if shape.Source == sizing.FromConfig {
		return "sizing.allocatable of pool " + o.pool
	}
	return string(shape.Source) + " " + node
}

// daemonsPart is " − 450m of DaemonSets (largest: kube-system/a 300m, kube-system/b 150m)", or nothing.
func daemonsPart(s *sizing.Shortfall) string {
	if s.Daemons.Sign() == 0 {
		return ""
	}
	var parts []string
	for _, d := range s.Largest {
		quantity := d.Request[s.Resource]
		parts = append(parts, d.Name+" "+quantity.String())
	}
	return fmt.Sprintf(" − %s of DaemonSets (largest: %s)", s.Daemons.String(), strings.Join(parts, ", "))
}
