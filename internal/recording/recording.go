// Package recording collects the operations of workers and suite during a run. It merges their lanes into one stream
// in the order of the returns, shows it to observers, and writes it to a file. It knows neither servers nor faults,
// and measures and judges nothing.
package recording

import (
	"sync"
	"time"

	"hammerlock/history"
)

// How often recorded operations are collected, and how often Tell is called.
const (
	DrainEvery = 20 * time.Millisecond
	tellEvery  = 250 * time.Millisecond
)

// Options say which operations are recorded and who sees them.
type Options struct {
	Clock *history.Clock
	Lanes []*history.Lane // lanes of the workers
	Slack time.Duration   // largest difference between the clocks of two lanes
	Wake  chan struct{}   // workers send on it to request a drain
	// Abandoned lists the numbers of lanes with dead writers; nil = no writer can die.
	Abandoned func() []int
	// These three are for workers on other machines; nil = there are none. Feeds receive their records. Written is
	// called with the time up to which records are on disk. Proven returns the final error bounds of their clocks.
	Feeds   []*history.Feed
	Written func(upTo time.Duration)
	Proven  func() history.Agreement
	// Observe receives every operation, in one goroutine; it must not keep the pointer.
	Observe func(*history.Op)
	// Tell is called regularly in the same goroutine, with the current time, and the time up to which every operation
	// was observed.
	Tell func(now, final time.Duration)
	// Reader supplies the operations; nil = workers record them in lanes.
	Reader Reader
	// file of the history; empty = it is not kept
	File   string
	Header history.Header
}

// Recording collects the operations of a run. Lanes of the suite must be added before Start.
type Recording struct {
	o     Options
	lanes []*history.Lane
	merge *history.Merge
	tape  keeper
	reads *follow // nil without a Reader
	done  chan struct{}
	drain sync.WaitGroup

	mu     sync.Mutex
	faults []history.Injection   // all faults of the history so far
	notes  map[history.ID]string // descriptions of operations, kept for observers: there are few
}

// New makes a Recording. It creates the file of the history, if there is to be one.
func New(o Options) (r *Recording, err error) {
	r = &Recording{o: o, lanes: o.Lanes, done: make(chan struct{}), faults: o.Header.Faults,
		notes: map[history.ID]string{}}
	switch {
	case o.Reader != nil:
		r.reads = &follow{reader: o.Reader}
		r.tape, err = newSheet(o.File, o.Header, o.Reader)
	case o.File != "":
		r.tape, err = newTape(o.File, o.Header)
	default:
		r.tape = (*tape)(nil) // a nil tape keeps nothing
	}
	return r, err
}

// keeper writes the history of a run to a file.
type keeper interface {
	// note keeps a description of an operation, and inject a fault that is in no plan. Any goroutine may call them.
	note(id history.ID, text string)
	inject(history.Injection)
	// add keeps an operation. If that fails, close returns the error.
	add(*history.Op)
	// flush writes the added operations if the last write is long enough ago. It reports whether it has written
	// them, or has begun to.
	flush(now time.Duration) bool
	// close ends the history. The argument partial says why the run ended early; allowed says that the history counts
	// as whole all the same. The argument proven is the agreement of the clocks if the header lacks it.
	close(partial string, allowed bool, measured *history.Measured, proven history.Agreement) error
}

// Lane adds a lane of the suite itself, with the given number of slots. Faults and heals stay open for seconds there,
// so it is a slow lane.
func (r *Recording) Lane(slots int) *history.Lane {
	lane := history.NewSlowLane(r.o.Clock, len(r.lanes), -1, slots, r.o.Wake)
	r.lanes = append(r.lanes[:len(r.lanes):len(r.lanes)], lane)
	return lane
}

// Clock returns the run's clock.
func (r *Recording) Clock() *history.Clock { return r.o.Clock }

// Note keeps a description of an operation that is not yet published. Any goroutine may call it.
func (r *Recording) Note(id history.ID, text string) {
	r.tape.note(id, text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes[id] = text
}

// Words returns the description that Note has given to an operation.
func (r *Recording) Words(id history.ID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.notes[id]
}

// Inject adds a fault that is in no plan to the history. It returns the number by which operations refer to it. Any
// goroutine may call it.
func (r *Recording) Inject(i history.Injection) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tape.inject(i)
	r.faults = append(r.faults[:len(r.faults):len(r.faults)], i)
	return int64(len(r.faults)) - 1
}

// Fault returns the fault with this number; any goroutine may call it.
func (r *Recording) Fault(number int64) history.Injection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults[number]
}

// Start begins the collection.
func (r *Recording) Start() {
	r.merge = history.NewMerge(r.o.Clock, r.lanes)
	r.merge.Slack, r.merge.Feeds = r.o.Slack, r.o.Feeds
	r.drain.Go(r.run)
}

func (r *Recording) run() {
	ticker := time.NewTicker(DrainEvery)
	defer ticker.Stop()
	told := time.Duration(0)
	for {
		select {
		case <-r.done:
			return
		case <-r.o.Wake:
		case <-ticker.C:
		}
		if r.o.Abandoned != nil { // open calls of dead processes would delay the history until the end
			for _, lane := range r.o.Abandoned() {
				r.merge.Abandon(lane)
			}
		}
		final := r.merge.Drain(r.observe)
		now := r.o.Clock.Now()
		if r.reads != nil {
			final = r.reads.look(now, r.o.Observe)
		}
		if r.tape.flush(now) && r.o.Written != nil {
			r.o.Written(final)
		}
		if now-told >= tellEvery {
			if told = now; r.reads != nil {
				now = final // the display shows the state at that time
			}
			r.o.Tell(now, final)
		}
	}
}

func (r *Recording) observe(op *history.Op) {
	r.tape.add(op)
	if r.reads != nil {
		r.reads.next = append(r.reads.next, *op) // it is shown in order with the Reader's operations
		return
	}
	r.o.Observe(op)
}

// Stop ends the collection; nothing is observed until Flush.
func (r *Recording) Stop() {
	close(r.done)
	r.drain.Wait()
}

// Flush collects the rest, after Stop and after the last write to a lane. It returns how often writers had to wait
// for the reader.
func (r *Recording) Flush() (stalls int64) {
	r.merge.Flush(r.observe)
	for _, l := range r.lanes {
		stalls += int64(l.Stalls())
	}
	return stalls
}

// Close ends the file, after Flush or if the run did not begin. The argument partial says why the run ended early;
// allowed says that the history counts as whole all the same.
func (r *Recording) Close(partial string, allowed bool, measured *history.Measured) error {
	var proven history.Agreement
	if r.o.Proven != nil {
		proven = r.o.Proven()
	}
	err := r.tape.close(partial, allowed, measured, proven)
	if err == nil && r.o.Written != nil {
		r.o.Written(history.Forever)
	}
	return err
}
