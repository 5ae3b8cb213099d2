package witness

import (
	"iter"
	"slices"
	"time"

	"hammerlock/history"
)

// requests are those about a key on a server that may still have an effect, or have to be told of. What is asked of
// them takes no longer where there are many: a pipeline may have all of a run's commands in flight.
type requests struct {
	waiting queue           // without an answer so far, by their calls
	heard   queue           // answered, by their returns
	lost    queue           // without an answer for good, by when that was known
	certain queue           // answered that they had an effect, whatever the key was before
	causes  map[clue]*queue // those that may have had an effect
}

// entry is a request as it stands in queues.
type entry struct {
	*sighting
	ledger *ledger
	order  time.Duration // its place in them
	over   bool          // it stands in none of them any more
	queues []*queue
}

// reply is what a request was answered, as far as it may have had an effect.
type reply uint8

const (
	unheard  reply = iota // nothing, so far or for good
	affirmed              // that it had one
	open                  // what can mean either
)

// clue is how the request of an effect is found: by an argument that the effect names, or by the intent of those that
// need not name one.
type clue struct {
	reply  reply
	intent intent
	token  string
}

// queue is a list of entries by their places in it. Those that are over are taken out a few at a time.
type queue struct {
	clue  clue
	list  []*entry
	first int
	over  int // entries in list[first:]
}

// nameless are the intents of requests that may cause an effect without naming its token.
var nameless = []intent{frees, extends, runs}

// put adds an entry. Few, if any, belong behind it.
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

// drop takes note that an entry is over. The first one and the one behind it are not.
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

// all are the entries by their places. None may be taken out meanwhile.
func (q *queue) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range q.list[q.first:] {
			if !e.over && !yield(e) {
				return
			}
		}
	}
}

// at is the first entry, or the one behind it; nil without one.
func (q *queue) at(n int) *entry {
	if q.first+n >= len(q.list) {
		return nil
	}
	return q.list[q.first+n]
}

func (q *requests) none() bool { return q.waiting.empty() && q.heard.empty() && q.lost.empty() }

// sent takes in a request that is about to be forwarded.
func (l *ledger) sent(s *sighting) {
	e := &entry{sighting: s, ledger: l, order: s.Call}
	l.waiting.put(e)
	l.index(e, unheard)
	s.entries = append(s.entries, e)
}

// index lets an entry be found as the cause of an effect.
func (q *requests) index(e *entry, h reply) {
	put := func(c clue) { made(q.causes, c, queue{clue: c}).put(e) }
	if slices.Contains(nameless, e.intent) {
		put(clue{h, e.intent, ""})
	}
	for _, arg := range e.args {
		put(clue{h, reads, arg})
	}
}

// answered takes in the answer to a request, or that it has none. Fruitless says that it had no effect.
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

// drop takes a request out.
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

// retired takes out those that were answered by then, in the order of their answers.
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

// ranks are the requests that may have caused a change, the likeliest first: those that name a token of it before
// others, and of either those that were answered that they had an effect.
var ranks = []struct {
	named   bool
	replies []reply
}{
	{true, []reply{affirmed}}, {true, []reply{open, unheard}}, {false, []reply{affirmed}},
	{false, []reply{open, unheard}},
}

// first finds that request of the highest rank which may have caused a change and was answered first; nil if there is
// none.
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
