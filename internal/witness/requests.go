package witness

import (
	"iter"
	"slices"
	"time"

	"hammerlock/history"
)

// requests has those requests for a key on a server that may still have an effect. A pipeline may have thousands in
// flight, so a search must not visit them all.
type requests struct {
	waiting queue           // without a reply so far, sorted by call
	heard   queue           // answered, sorted by return
	lost    queue           // without a reply for ever, sorted by the time at which that was known
	certain queue           // answered, and certainly effective
	causes  map[clue]*queue // those that may have had an effect, indexed by clue
}

// entry is a request in these queues.
type entry struct {
	*sighting
	ledger *ledger
	order  time.Duration // sort key in the queues
	over   bool          // it was removed from all queues
	queues []*queue
}

// reply says what a request's reply shows about the effect of the request.
type reply uint8

const (
	unheard  reply = iota // there is no reply
	affirmed              // the request had an effect
	open                  // the request may have had an effect
	idle                  // it is a script with a reply that usually means that it had no effect
)

// clue is an index key, by which the request that caused an effect is found. It is an argument that the effect names
// or, for commands that need not name one, the intent.
type clue struct {
	reply  reply
	intent intent
	token  string
}

// queue is a sorted list of entries. Removed entries are marked first, and deleted later in batches.
type queue struct {
	clue  clue
	list  []*entry
	first int
	over  int // number of removed entries in list[first:]
}

// nameless lists the intents of requests that need not have the token as an argument. DEL, for
// example, has only the key.
var nameless = []intent{frees, extends, runs}

// put inserts an entry in order. Its place is usually near the end.
func (q *queue) put(e *entry) {
	i := len(q.list)
	for i > q.first && q.list[i-1].order > e.order {
		i--
	}
	if i > q.first && q.list[i-1] == e {
		return
	}
	q.list = slices.Insert(q.list, i, e)
	e.queues = append(e.queues, q)
}

// drop counts one more removed entry. It keeps the first two places of the list free of removed entries, because
// the method at reads them.
func (q *queue) drop() {
	q.over++
	for q.over > 0 && (q.list[q.first].over || q.list[q.first+1].over) {
		if !q.list[q.first].over {
			q.list[q.first+1] = q.list[q.first]
		}
		q.list[q.first] = nil
		q.first, q.over = q.first+1, q.over-1
	}
	if q.first > len(q.list)/2 || 2*q.over > len(q.list)-q.first {
		q.list = slices.DeleteFunc(q.list, func(e *entry) bool { return e == nil || e.over })
		q.first, q.over = 0, 0
	}
}

func (q *queue) empty() bool { return q.first+q.over == len(q.list) }

// all iterates over the entries in order. The caller must not remove entries during the iteration.
func (q *queue) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range q.list[q.first:] {
			if !e.over && !yield(e) {
				return
			}
		}
	}
}

// at returns the first entry for n = 0, and the second for n = 1; nil if there is none.
func (q *queue) at(n int) *entry {
	if q.first+n >= len(q.list) {
		return nil
	}
	return q.list[q.first+n]
}

func (q *requests) none() bool { return q.waiting.empty() && q.heard.empty() && q.lost.empty() }

// sent adds a request that is about to be forwarded.
func (l *ledger) sent(s *sighting) {
	e := &entry{sighting: s, ledger: l, order: s.Call}
	l.waiting.put(e)
	l.index(e, unheard)
	s.entries = append(s.entries, e)
}

// index adds a request to the index of possible causes.
func (q *requests) index(e *entry, h reply) {
	put := func(c clue) { made(q.causes, c, queue{clue: c}).put(e) }
	if slices.Contains(nameless, e.intent) {
		put(clue{h, e.intent, ""})
	}
	for _, arg := range e.args {
		put(clue{h, reads, arg})
	}
}

// answered moves a request to the queue for answered requests, or for those that will never get a reply. If fruitless
// is true, the request had no effect.
func (q *requests) answered(e *entry, fruitless bool) {
	q.drop(e)
	a := &entry{sighting: e.sighting, ledger: e.ledger, order: e.Return}
	if e.Return == history.Forever {
		a.order = e.lost
		q.lost.put(a)
	} else {
		q.heard.put(a)
	}
	switch {
	case fruitless:
	case e.Return == history.Forever:
		q.index(a, unheard)
	case e.says == did:
		q.index(a, affirmed)
		if e.intent == tries || e.intent == sets || e.intent == renews || e.intent == frees {
			q.certain.put(a)
		}
	case e.says == didNot:
		q.index(a, idle)
	default:
		q.index(a, open)
	}
}

func (q *requests) drop(e *entry) {
	if e.over {
		return
	}
	e.over = true
	for _, at := range e.queues {
		if at.drop(); at.empty() {
			if q.causes[at.clue] == at {
				delete(q.causes, at.clue)
			}
		}
	}
	e.queues = nil
}

// retired removes the requests that were answered before a given time, and returns them in the order of their replies.
func (q *requests) retired(by time.Duration) (over []*sighting) {
	for _, list := range []*queue{&q.heard, &q.lost} {
		for e := list.at(0); e != nil && e.sighting.at() <= by; e = list.at(0) {
			q.drop(e)
			over = append(over, e.sighting)
		}
	}
	slices.SortStableFunc(over, func(a, b *sighting) int { return int(a.at() - b.at()) })
	return over
}

// ranks lists the kinds of requests that may have caused a change, the likeliest first. Requests that name the token
// come before others, and those whose reply affirms an effect before those that may have had one. If a reply affirms
// that a command has deleted a key, or set its expiry, that is certain. From a script's reply it is only likely.
var ranks = []struct {
	named   bool
	intents []intent // of requests that do not name the token
	replies []reply
}{
	{true, nil, []reply{affirmed}},
	{true, nil, []reply{open, unheard}},
	{false, []intent{frees, extends}, []reply{affirmed}},
	{true, nil, []reply{idle}},
	{false, []intent{runs}, []reply{affirmed}},
	{false, nameless, []reply{open, unheard, idle}},
}

// affirms tells whether some request may have caused a change, has a token of the change as an argument, and has a
// reply that affirms an effect.
func (q *requests) affirms(d *diff, may func(*entry) bool) bool {
	for _, token := range d.names() {
		if at := q.causes[clue{affirmed, reads, token}]; at != nil {
			for e := range at.all() {
				if may(e) {
					return true
				}
			}
		}
	}
	return false
}

// first returns the request that most likely caused a change; nil if none can have caused it. Within the highest rank
// that has a candidate, it takes the request that was answered first.
func (q *requests) first(d *diff, may func(*entry) bool) (best *entry) {
	names := d.names()
	look := func(c clue) {
		if at := q.causes[c]; at != nil {
			for e := range at.all() {
				if may(e) {
					if best == nil || e.returned() < best.returned() {
						best = e
					}
					return
				}
			}
		}
	}
	for _, rank := range ranks {
		for _, reply := range rank.replies {
			for _, token := range names {
				if rank.named {
					look(clue{reply, reads, token})
				}
			}
			for _, i := range rank.intents {
				look(clue{reply, i, ""})
			}
		}
		if best != nil {
			break
		}
	}
	return best
}
