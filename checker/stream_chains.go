package checker

import "hammerlock/history"

// mostParents is how many page views are kept. Those that a worker has loaded and not yet replaced are kept for longer.
const mostParents = 1 << 15

// chains keeps which store replaced each of the last page views. A second acknowledged store that names the same one is
// a fork, of which one branch is lost.
type chains struct {
	places map[parent]int32 // in ring
	ring   []replaced       // the oldest first, from next on
	next   int              // where the oldest is, when the ring is full
	loaded map[int32]parent // by worker: what it will replace
}

// parent is a page view: a page and the store that wrote it.
type parent struct {
	key  int32
	seen history.ID
}

// replaced is a page view, and which store replaced it.
type replaced struct {
	view   parent
	child  history.ID // 0 = none yet
	worker int32
	pins   int32 // workers that have loaded it
}

func newChains() chains {
	return chains{places: map[parent]int32{}, loaded: map[int32]parent{}}
}

// observe takes a load or a store in and returns the earlier store that replaced the same page view, if there is one.
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
		return nil // it may not have happened
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

// entry finds a page view or adds it in place of the oldest one without pins. It is valid until the next one is added.
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
		} // all are pinned, by as many workers
	}
	c.places[p] = int32(len(c.ring))
	c.ring = append(c.ring, replaced{view: p})
	return &c.ring[len(c.ring)-1]
}
