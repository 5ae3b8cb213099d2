package main

import (
	"cmp"
	"container/heap"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"hammerlock/history"
)

// world is one simulated run of a lock: servers, links, processes, workers and disturbances, with one true clock. The
// seed determines all of it.
type world struct {
	r      *rand.Rand
	kind   *kind
	wrong  mistake
	often  int // the mistake is made once in this many times
	late   int // a holder exceeds its lease once in this many times
	now    time.Duration
	events events
	count  int // orders simultaneous events

	ttl, retry, stay, length time.Duration
	touching                 bool // two stamps of a process may be equal
	strict                   bool // a grant that arrives after its lease is treated as no grant
	perVisit                 bool // a place in the queue belongs to a visit, not to a worker
	twice                    bool // workers sometimes release twice
	counts                   bool // a reentrant lock reports its counts
	visits                   bool // the history records the ends of visits
	extends                  bool // holders extend their leases
	sites                    []*site
	pages                    []counted
	processes                []*process
	threads                  []*thread
	slow                     time.Duration // largest extra delay of a message
	lossy                    float64       // probability that a message is lost
	broken                   bool          // a planned fault makes a server forget open leases or moves its clock
	beliefs                  []*hold

	ops     []*history.Op
	numbers map[int]uint64 // by lane: number of operations
	lanes   int
	tokens  uint64
	h       history.History
}

// counted is a page of the counter.
type counted struct {
	value, fence int64
	seen         history.ID
	old          history.ID // the previous store
	oldValue     int64
}

// process has its own clock, and may be paused.
type process struct {
	number  int16
	offset  time.Duration
	last    time.Duration
	stopped time.Duration // end of the pause
	fence   int64         // its own counter, used only by a wrong lock
}

type event struct {
	at time.Duration
	n  int
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].n, e[j].n)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// at schedules an event.
func (w *world) at(t time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{max(t, w.now), w.count, do})
}

// run handles events until there are none.
func (w *world) run() {
	for len(w.events) > 0 {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	for _, t := range w.threads {
		t.stop()
	}
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.r.Int64N(int64(max(most-least, 0))+1))
}

// one returns true once in n times, at random.
func (w *world) one(n int) bool { return w.r.IntN(n) == 0 }

// slips reports whether a mistake is made now.
func (w *world) slips(m mistake) bool { return w.wrong == m && w.one(w.often) }

// thread is a worker or a watchdog.
type thread struct {
	w       *world
	p       *process
	worker  int32
	lane    int
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	stopped time.Duration // end of a pause of this thread alone
	guards  *thread       // the worker whose holds it renews
	dead    bool
}

// ended is the value with which a thread panics to end itself.
type ended struct{}

func (w *world) spawn(p *process, worker int32, lane int, body func(*thread)) *thread {
	t := &thread{w: w, p: p, worker: worker, lane: lane}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(ended); !ok {
					panic(r)
				}
			}
		}()
		t.yield = yield
		body(t)
		t.dead = true
	})
	w.threads = append(w.threads, t)
	w.at(w.now, t.wake)
	return t
}

// wake resumes a thread, now or at the end of its pause.
func (t *thread) wake() {
	until := max(t.p.stopped, t.stopped)
	switch {
	case t.dead:
	case until > t.w.now:
		t.w.at(until, t.wake)
	default:
		t.next()
	}
}

// pause blocks until wake.
func (t *thread) pause() {
	if !t.yield(struct{}{}) {
		panic(ended{})
	}
}

func (t *thread) sleep(d time.Duration) {
	t.w.at(t.w.now+d, t.wake)
	t.pause()
}

// stamp reads the process's clock.
func (t *thread) stamp() time.Duration { return t.w.stamp(t.p) }

func (w *world) stamp(p *process) time.Duration {
	least := p.last + 1
	if w.touching {
		least = p.last
	}
	p.last = max(w.now+p.offset, least)
	return p.last
}

// id numbers an operation in its lane.
func (w *world) id(lane int) history.ID {
	w.numbers[lane]++
	return history.ID(lane+1)<<40 | history.ID(w.numbers[lane])
}

func (w *world) lane() int {
	w.lanes++
	return w.lanes
}

func (t *thread) call(op history.Op) *history.Op {
	op.ID, op.Worker, op.Process = t.w.id(t.lane), t.worker, t.p.number
	op.Call, op.Return = t.stamp(), history.Forever
	if op.Kind == history.Acquire && op.Hold == 0 {
		op.Hold = op.ID
	}
	t.w.ops = append(t.w.ops, &op)
	return &op
}

func (t *thread) done(op *history.Op, o history.Outcome, why history.Reason) {
	op.Return, op.Outcome, op.Reason = t.stamp(), o, why
}

// suite adds an event to the history that no worker caused. Its times are those of a process's clock.
func (w *world) suite(op history.Op, from, to time.Duration) {
	op.ID, op.Worker = w.id(0), -1
	op.Call, op.Return = from+w.processes[op.Process].offset, to
	if to != history.Forever {
		op.Return = to + w.processes[op.Process].offset
	}
	w.ops = append(w.ops, &op)
}

// history sorts the operations by their returns.
func (w *world) history() *history.History {
	slices.SortStableFunc(w.ops, func(a, b *history.Op) int { return cmp.Compare(a.Return, b.Return) })
	w.h.Ops = make([]history.Op, 0, len(w.ops))
	for _, op := range w.ops {
		w.h.Ops = append(w.h.Ops, *op)
	}
	return &w.h
}

// answer is a server's answer. The value silence means that no answer came.
type answer int

const (
	silence answer = iota
	yes
	busy
	lost
)

type reply struct {
	said         answer
	count, fence int64
	value        int64
	seen         history.ID
}

// ask sends a command to servers, and waits for all answers or the timeout. Late messages still arrive.
func (t *thread) ask(sites []*site, timeout time.Duration, do func(*site) reply) []reply {
	w, replies, left, over := t.w, make([]reply, len(sites)), len(sites), false
	finish := func() {
		if !over {
			over = true
			t.wake()
		}
	}
	for i, s := range sites {
		w.send(s, func() {
			r := do(s)
			w.back(s, func() {
				if replies[i] = r; !over {
					if left--; left == 0 {
						finish()
					}
				}
			})
		})
	}
	w.at(w.now+timeout, finish)
	for !over {
		t.pause()
	}
	return replies
}

// send carries a message to a server. It may be delayed or lost; a hung server gets it later, and a stopped server
// never gets it.
func (w *world) send(s *site, do func()) {
	if w.loses(s) {
		return
	}
	var arrive func()
	arrive = func() {
		switch {
		case s.down > w.now:
		case s.hung > w.now:
			w.at(s.hung, arrive)
		default:
			do()
		}
	}
	w.at(w.now+w.delay(s), arrive)
}

func (w *world) back(s *site, do func()) {
	if !w.loses(s) {
		w.at(w.now+w.delay(s), do)
	}
}

func (w *world) loses(s *site) bool { return !s.counter && w.lossy > 0 && w.r.Float64() < w.lossy }

func (w *world) delay(s *site) time.Duration {
	d := w.between(20*time.Microsecond, 300*time.Microsecond)
	if !s.counter {
		if w.one(8) {
			d += w.between(0, 2*time.Millisecond)
		}
		d += w.between(0, w.slow)
	}
	return d
}
