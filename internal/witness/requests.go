package witness

import (
	"iter"
	"slices"
	"time"

	"hammerlock/history"
)

// requests has the requests about a key on a server that may still have an effect. Looking them up must not take longer
// if there are many: a pipeline may have all commands of a run in flight.
type requests struct {
	waiting queue           // without a reply so far, by their calls
	heard   queue           // answered, by their returns
	lost    queue           // those that will never get a reply, by the time at which that was known
	certain queue           // answered, certainly with an effect
	causes  map[clue]*queue // those that may have had an effect
}

// entry is a request in these queues.
type entry struct {
	*sighting
	ledger *ledger
	order  time.Duration // its place in the queues
	over   bool          // it is not in any queue any more
	queues []*queue
}

// reply is what the reply to a request says about its effect.
type reply uint8

const (
	unheard  reply = iota // there is no reply
	affirmed              // it had an effect
	open                  // it may have had one
)

// clue is how the request that has caused an effect is found: by an argument that the effect names, or by its intent if
// it need not name one.
type clue struct {
	reply  reply
	intent intent
	token  string
}

// queue is a sorted list of entries. Entries that are over are removed a few at a time.
type queue struct {
	clue  clue
	list  []*entry
	first int
	over  int // entries in list[first:]
}

// nameless lists the intents of requests that may have an effect without naming its token.
var nameless = []intent{frees, extends, runs}

// put adds an entry, usually at the end or near it.
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

// drop notes that an entry is over. It keeps the first and the second entry valid.
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

// all iterates over the entries in order. None may be removed meanwhile.
func (q *queue) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range q.list[q.first:] {
			if !e.over && !yield(e) {
				return
			}
		}
	}
}

// at is the first entry, or the second; nil if there is none.
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

// index makes a request findable as the cause of an effect.
func (q *requests) index(e *entry, h reply) {
	put := func(c clue) { made(q.causes, c, queue{clue: c}).put(e) }
	if slices.Contains(nameless, e.intent) {
		put(clue{h, e.intent, ""})
	}
	for _, arg := range e.args {
		put(clue{h, reads, arg})
	}
}

// answered adds the reply to a request, or that it has none. Fruitless means that it had no effect.
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
	default:
		q.index(a, open)
	}
}

// drop removes a request.
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

// retired removes the requests that were answered before a time, and returns them in the order of their replies.
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

// ranks lists the kinds of requests that may have caused a change, the likeliest first: those that name its token come
// before others, and those that say that they had an effect before those that may have had one.
var ranks = []struct {
	named   bool
	replies []reply
}{
	{true, []reply{affirmed}}, {true, []reply{open, unheard}}, {false, []reply{affirmed}},
	{false, []reply{open, unheard}},
}

// first returns, among the requests of the highest rank that may have caused a change, the one that was answered first;
// nil if there is none.
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
			for _, i := range nameless {
				if !rank.named {
					look(clue{reply, i, ""})
				}
			}
		}
		if best != nil {
			break
		}
	}
	return best
}
