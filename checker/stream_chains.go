package checker

import "hammerlock/history"

// mostParents is the number of page views that are kept. A view is kept longer while a worker may still replace it.
const mostParents = 1 << 15

// chains remembers which store replaced each of the last page views. If a second acknowledged store replaces the same
// view, one of the two stores is lost.
type chains struct {
	places map[parent]int32 // view -> its index in ring
	ring   []replaced       // when it is full, the oldest is at next
	next   int              // index of the oldest when the ring is full
	loaded map[int32]parent // by worker: the view that it will replace
}

// parent is a page view: a page and the store that wrote it.
type parent struct {
	key  int32
	seen history.ID
}

// replaced is a page view, with the store that replaced it.
type replaced struct {
	view   parent
	child  history.ID // 0 = none yet
	worker int32
	pins   int32 // number of workers that have loaded it
}

func newChains() chains {
	return chains{places: map[parent]int32{}, loaded: map[int32]parent{}}
}

// observe adds a load or a store. If another store has already replaced the same page view, it returns that store;
// otherwise nil.
func (c *chains) observe(op *history.Op) *replaced {
	if op.Key < 0 {
		return nil
	}
	p := parent{op.Key, op.Seen}
	if op.Kind == history.Load {
		if op.Outcome == history.OK {
			c.unpin(op.Worker)
			c.entry(p).pins++
			c.loaded[op.Worker] = p
		}
		return nil
	}
	defer c.unpin(op.Worker)
	if op.Outcome != history.OK {
		return nil // the store may have had no effect
	}
	e := c.entry(p)
	if e.child != 0 {
		first := *e
		return &first
	}
	e.child, e.worker = op.ID, op.Worker
	return nil
}

func (c *chains) unpin(worker int32) {
	p, ok := c.loaded[worker]
	if !ok {
		return
	}
	delete(c.loaded, worker)
	c.ring[c.places[p]].pins--
}

// entry finds a page view, or adds it in place of the oldest view that no worker has loaded. The pointer is valid until
// the next call.
func (c *chains) entry(p parent) *replaced {
	if at, ok := c.places[p]; ok {
		return &c.ring[at]
	}
	if len(c.ring) >= mostParents {
		for range c.ring {
			at := c.next
			c.next = (c.next + 1) % len(c.ring)
			if old := &c.ring[at]; old.pins == 0 {
				delete(c.places, old.view)
				c.places[p] = int32(at)
				*old = replaced{view: p}
				return old
			}
		} // workers have loaded all of them
	}
	c.places[p] = int32(len(c.ring))
	c.ring = append(c.ring, replaced{view: p})
	return &c.ring[len(c.ring)-1]
}
