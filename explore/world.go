package explore

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
)

// kind says what waits for the scheduler.
type kind uint8

// The kinds of event. A client's own step is no message, but others may come between.
const (
	request kind = iota
	reply
	start   // a client begins
	between // between two commands of a lock that belong together
	load    // reads the counter
	store   // writes the counter
	reload  // reads the counter once more, before a reader goes
)

var kinds = [...]string{"request", "reply", "start", "step", "load", "store", "load again"}

// event is something that happens when the scheduler lets it.
type event struct {
	client     int
	x          *exchange // nil for a client's own step
	site, conn int       // of its link
	number     int       // in the order of arrival at the connection
	kind       kind
	words      []string      // of the request
	fate       chan fate     // of a step
	happen     func(fate)    // of a message: carries it out, or not
	held       time.Time     // it alone is held up until then
	done       chan struct{} // of a step: closed when it was carried out
}

// fate is what becomes of an event.
type fate uint8

const (
	goes    fate = iota
	lost         // it never arrives, and its sender gets no error
	broken       // its connection breaks
	refused      // the server answers with an error
	over         // the schedule has ended: a step is not taken
)

// name is what an event is called where schedules are compared: the same in every run of the same schedule.
func (e *event) name() string {
	if len(e.words) > 0 {
		return kinds[e.kind] + " " + e.words[0]
	}
	return kinds[e.kind]
}

// world is what the clients of one schedule live in.
type world struct {
	clock   *history.Clock
	kit     *kit
	over    chan struct{} // closed when the schedule has ended
	arrived chan struct{} // wakes the scheduler when nothing else was left to do
	timer   *time.Timer   // does, too
	links   sync.WaitGroup

	mu       sync.Mutex
	ended    bool
	hung     *history.Hung // a call that does not return, and where it waits
	joined   []*link
	pending  []*event
	dialled  [][]int // by client and site
	arrivals int
	finished []bool
	calls    []func() // by client: calls off its call to the lock; nil outside of one
	trace    *trace   // nil if it is not read
	panicked []string // by client: what a call to its lock came to
	early    bool     // a grant came about before the call that is written down for it
	lacks    string   // a command that the server in memory does not know; empty = it knew all
	resp3    int      // connections that were asked for RESP 3, and not used since
}

func newWorld(clients, sites int, k *kit) *world {
	w := &world{
		clock: history.NewOrderedClock(0), kit: k, over: make(chan struct{}), arrived: make(chan struct{}, 1),
		dialled: make([][]int, clients), finished: make([]bool, clients), calls: make([]func(), clients),
		panicked: make([]string, clients),
	}
	for i := range w.dialled {
		w.dialled[i] = make([]int, sites)
	}
	return w
}

// post makes an event of what is about to happen.
func (w *world) post(e *event) {
	w.mu.Lock()
	w.arrivals++
	e.number = w.arrivals
	w.pending = append(w.pending, e)
	w.mu.Unlock()
	signal(w.arrived)
}

// misplaced says that a grant came about before the call that is written down for it.
func (w *world) misplaced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.early = true
}

// join takes a link in. It reports false if the schedule has ended.
func (w *world) join(l *link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joined = append(w.joined, l)
	return !w.ended
}

// wasDialled tells whether any client has made a connection.
func (w *world) wasDialled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.joined) > 0
}

// end closes all links: nothing that waits happens any more.
func (w *world) end() {
	w.mu.Lock()
	w.ended = true
	all := w.joined
	w.mu.Unlock()
	close(w.over)
	for _, l := range all {
		l.close()
	}
}

// step is an event of a client's own, which does something, unless that is nil. It reports whether the client goes on.
func (w *world) step(client int, k kind, do func()) bool {
	e := &event{client: client, kind: k, done: make(chan struct{}), fate: make(chan fate, 1)}
	w.post(e)
	became := over
	select {
	case became = <-e.fate:
	case <-w.over:
	}
	if became != goes {
		return false
	}
	if do != nil {
		do()
	}
	close(e.done)
	return true
}

// signal wakes who waits on a channel with room for one signal.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// settle lets an event happen.
func (w *world) settle(e *event, f fate) {
	w.mu.Lock()
	w.pending = slices.DeleteFunc(w.pending, func(x *event) bool { return x == e })
	w.mu.Unlock()
	if e.happen != nil {
		e.happen(f)
	} else {
		e.fate <- f
	}
}

// ready lists the events that can happen, in an order that depends on nothing but the schedule: those of the
// client that went last come first.
func (w *world) ready(current int, can func(*event) bool) []*event {
	w.mu.Lock()
	var list []*event
	for _, e := range w.pending {
		if can(e) {
			list = append(list, e)
		}
	}
	w.mu.Unlock()
	rank := func(e *event) int {
		if e.client == current {
			return -1
		}
		return e.client
	}
	slices.SortFunc(list, func(a, b *event) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.site, b.site), cmp.Compare(a.conn, b.conn),
			cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number))
	})
	return list
}

// finish says that a client has made all of its visits.
func (w *world) finish(client int) {
	w.mu.Lock()
	w.finished[client] = true
	w.mu.Unlock()
	signal(w.arrived)
}

// hangUp closes the subscriptions of a client that died: the server must not take it for a listener.
func (w *world) hangUp(client int) {
	w.mu.Lock()
	all := w.joined
	w.mu.Unlock()
	for _, l := range all {
		l.mu.Lock()
		subscribed := l.subscribed
		l.mu.Unlock()
		if l.client == client && subscribed {
			l.close()
		}
	}
}

// asked counts the events that there were.
func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrivals
}

// done tells whether everybody has finished who still can, and nothing that they sent is still on its way.
func (w *world) done(can func(client int) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, f := range w.finished {
		if !f && can(i) {
			return false
		}
	}
	return !slices.ContainsFunc(w.pending, func(e *event) bool { return can(e.client) })
}

// call notes how a client's call to its lock can be called off; nil says that it is over.
func (w *world) call(client int, cancel func()) {
	w.mu.Lock()
	w.calls[client] = cancel
	w.mu.Unlock()
}

// callable tells whether a client is in a call to its lock that can be called off.
func (w *world) callable(client int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[client] != nil
}

// cancelCall calls a client's call to its lock off, once.
func (w *world) cancelCall(client int) {
	w.mu.Lock()
	cancel := w.calls[client]
	w.calls[client] = nil
	w.mu.Unlock()
	cancel()
}

// rest waits until something arrives, at most for so long. Time moves meanwhile: everybody waits for it.
func (w *world) rest(most time.Duration) {
	if w.timer == nil {
		w.timer = time.NewTimer(most)
	} else {
		w.timer.Reset(most)
	}
	defer w.timer.Stop()
	select {
	case <-w.arrived:
	case <-w.timer.C:
	}
}
