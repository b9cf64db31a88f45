package capacity

import "time"

// keep changes the number of placeholders. Those go first that have no node, then those that alone hold one.
func (r *replay) keep(places int) {
	surplus := len(r.warm) + r.pending - max(places, 0)
	if surplus < 0 {
		r.pending -= surplus
	}
	for ; surplus > 0; surplus-- {
		if r.pending > 0 {
			r.pending--
			continue
		}
		n := r.warm[0]
		for _, candidate := range r.warm {
			if candidate.workspaces < n.workspaces {
				n = candidate
			}
		}
		r.evict(n)
		if n.workspaces == 0 {
			r.empty(n)
		}
	}
	r.settle()
}

// settle binds what waits where there is room, and orders nodes for the rest.
func (r *replay) settle() {
	for len(r.waiting) > 0 {
		n, evicts := r.find()
		if n == nil {
			break
		}
		if evicts {
			r.evict(n)
			r.pending++
		}
		r.admit(n)
	}
	for r.pending > 0 {
		n := r.roomForPlaceholder()
		if n == nil {
			break
		}
		n.placeholder = true
		r.pending--
		r.file(n)
	}
	for r.ordered < r.wanted() && (r.MaxNodes == 0 || r.alive < r.MaxNodes) {
		r.ordered++
		r.alive++
		r.events.push(event{at: r.now + r.lead(), kind: ready})
	}
}

// admit puts the Workspace that has waited longest on a node.
func (r *replay) admit(n *node) {
	s := r.waiting[0]
	r.waiting = r.waiting[1:]
	r.result.wait(r.counts(s), r.now-s.At.Sub(r.began))
	r.put(s, n)
}

func (r *replay) roomForPlaceholder() *node {
	for _, n := range r.left {
		if n.workspaces <= r.Beside {
			return n
		}
	}
	return nil
}

// wanted is how many nodes what has none needs: one for each placeholder, and more where Workspaces do not fit beside them.
func (r *replay) wanted() int {
	places := max(r.Places, 1)
	rest := max(0, len(r.waiting)-r.pending*r.Beside)
	return r.pending + (rest+places-1)/places
}

func (r *replay) lead() time.Duration {
	switch len(r.Lead) {
	case 0:
		return 0
	case 1:
		return r.Lead[0]
	}
	at := r.random.Float64() * float64(len(r.Lead)-1)
	i := int(at)
	return r.Lead[i] + time.Duration((at-float64(i))*float64(r.Lead[i+1]-r.Lead[i]))
}

// ready is a new node: Workspaces that wait outrank placeholders.
func (r *replay) ready() {
	r.ordered--
	n := &node{}
	r.idle++
	for len(r.waiting) > 0 && n.workspaces < max(r.Places, 1) {
		r.admit(n)
	}
	if n.workspaces == 0 && r.pending == 0 {
		r.empty(n)
	}
	if r.pending > 0 && n.workspaces <= r.Beside {
		n.placeholder = true
		r.pending--
	}
	r.file(n)
	r.settle()
}
