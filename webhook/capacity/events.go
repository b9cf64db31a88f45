package capacity

import "time"

type kind uint8

const (
	ready kind = iota
	ends
	removal
)

// event is something that happens to a node, or makes one.
type event struct {
	at      time.Duration
	kind    kind
	node    *node
	emptied int
}

// events is a heap: the earliest is the first. container/heap would allocate for each.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	all := *h
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 2
		if all[parent].at <= all[i].at {
			break
		}
		all[parent], all[i] = all[i], all[parent]
		i = parent
	}
}

func (h *events) pop() event {
	all := *h
	first, last := all[0], len(all)-1
	all[0] = all[last]
	all[last] = event{}
	all = all[:last]
	*h = all
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(all); child++ {
			if all[child].at < all[least].at {
				least = child
			}
		}
		if least == i {
			return first
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}
