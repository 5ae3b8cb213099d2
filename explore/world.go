package explore

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
)

type kind uint8

// The kinds of events: messages, and a client's own steps. Other clients may act before such a step.
const (
	request kind = iota
	reply
	start   // a client begins
	between // between two commands of a broken lock; a correct lock would send them as one
	load    // reads the counter
	store   // writes the counter
	reload  // a reader loads the counter again before it releases
)

var kinds = [...]string{"request", "reply", "start", "step", "load", "store", "load again"}

// event is something that happens only when the scheduler decides so.
type event struct {
	client     int
	x          *exchange // the request or reply; nil for a client's own step
	site, conn int       // site and number of the link
	number     int       // number in the order of all arrivals
	kind       kind
	words      []string      // words of the request
	fate       chan fate     // receives the fate of a client's step
	happen     func(fate)    // executes the scheduler's decision on a message
	held       time.Time     // this event cannot happen before that time
	done       chan struct{} // closed when a client's step was executed
}

// fate is the scheduler's decision about an event.
type fate uint8

const (
	goes    fate = iota
	lost         // the message never arrives, and its sender gets no error
	broken       // its connection breaks
	refused      // the server replies with an error
	over         // the schedule has ended, so a client's step is not executed
)

// name identifies an event in schedules. It is the same each time the same schedule runs.
func (e *event) name() string {
	if len(e.words) > 0 {
		return kinds[e.kind] + " " + e.words[0]
	}
	return kinds[e.kind]
}

// world is the environment in which the clients of one schedule run.
type world struct {
	clock   *history.Clock
	kit     *kit
	over    chan struct{} // closed when the schedule has ended
	arrived chan struct{} // wakes the scheduler when it rests
	timer   *time.Timer   // wakes it too
	links   sync.WaitGroup

	mu       sync.Mutex
	ended    bool
	hung     *history.Hung // a lock call that does not return
	joined   []*link
	pending  []*event
	dialled  [][]int // by client and site: number of connections
	arrivals int
	finished []bool
	calls    []func() // by client: function that cancels its lock call; nil = no call
	trace    *trace   // nil = no trace is wanted
	panicked []string // by client: text of the panic of its lock call
	early    bool     // a grant came before the call that is recorded for it
	lacks    string   // a command that the server in memory does not support; empty = none
	resp3    int      // number of connections on which a client asked for RESP 3 and has sent nothing since
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

func (w *world) post(e *event) {
	w.mu.Lock()
	w.arrivals++
	e.number = w.arrivals
	w.pending = append(w.pending, e)
	w.mu.Unlock()
	signal(w.arrived)
}

// misplaced notes that a grant came before the call that is recorded for it.
func (w *world) misplaced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.early = true
}

// join adds a link. It returns false if the schedule has ended.
func (w *world) join(l *link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joined = append(w.joined, l)
	return !w.ended
}

func (w *world) wasDialled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.joined) > 0
}

// end ends the schedule and closes all links, so that waiting events never happen.
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

// step posts an event of a client, and waits until the scheduler lets it happen. Then it calls do, which may be nil. It
// returns false if the client must stop.
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

// signal wakes a goroutine that waits on a channel with room for one signal.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// settle executes the scheduler's decision on an event.
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

// ready lists the events that can happen. Those of the client that acted last come first. The order depends only on
// the schedule.
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

func (w *world) finish(client int) {
	w.mu.Lock()
	w.finished[client] = true
	w.mu.Unlock()
	signal(w.arrived)
}

// hangUp closes the subscriptions of a dead client, so that the server does not count it as a listener.
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

// asked returns the number of events so far.
func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrivals
}

// done tells whether all clients for which can returns true have finished, and none of their messages waits.
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

// call notes how to cancel a client's lock call; nil = the call has ended.
func (w *world) call(client int, cancel func()) {
	w.mu.Lock()
	w.calls[client] = cancel
	w.mu.Unlock()
}

// callable tells whether a client is in a lock call that can be cancelled.
func (w *world) callable(client int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[client] != nil
}

// cancelCall cancels a client's lock call, once.
func (w *world) cancelCall(client int) {
	w.mu.Lock()
	cancel := w.calls[client]
	w.calls[client] = nil
	w.mu.Unlock()
	cancel()
}

// rest waits until an event arrives, but not longer than the duration `most`. Virtual time advances,
// since all goroutines wait.
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
