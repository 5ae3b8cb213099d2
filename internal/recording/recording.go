// Package recording takes in what the workers and the suite record during a run: it merges their lanes into one stream,
// in the order of the returns, shows it to observers, and writes it to a file. It knows neither servers nor
// faults, and measures and judges nothing.
package recording

import (
	"sync"
	"time"

	"hammerlock/history"
)

// How often the recorded operations are taken in, and how often somebody is told about it.
const (
	DrainEvery = 20 * time.Millisecond
	tellEvery  = 250 * time.Millisecond
)

// Options say what is recorded, and who sees it.
type Options struct {
	Clock *history.Clock
	Lanes []*history.Lane // of the workers
	Slack time.Duration   // by which the clocks of two lanes may differ
	Wake  chan struct{}   // workers call for a drain on it
	// Abandoned lists the lanes, by number, whose writers are dead; nil = none dies.
	Abandoned func() []int
	// For workers on other machines: their records, the receiver of the time up to which these are written, and the
	// final bound of their clocks. Nil if there are none.
	Feeds   []*history.Feed
	Written func(upTo time.Duration)
	Proven  func() history.Agreement
	// Observe sees every operation, in one goroutine; it must not keep the pointer.
	Observe func(*history.Op)
	// Tell is told now and then, in the same goroutine, up to when everything was observed.
	Tell func(now, final time.Duration)
	// Reader reads the operations of the source; nil = workers record them in lanes.
	Reader Reader
	// File is where the history is kept; empty = nowhere.
	File   string
	Header history.Header
}

// Recording is what a run records. Lanes of the suite itself are added before Start.
type Recording struct {
	o     Options
	lanes []*history.Lane
	merge *history.Merge
	tape  keeper
	reads *follow // nil = without a Reader
	done  chan struct{}
	drain sync.WaitGroup

	mu     sync.Mutex
	faults []history.Injection   // in the history so far
	notes  map[history.ID]string // by operation; they stay, for observers: there are few
}

// New opens the file, if there is to be one.
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
		r.tape = (*tape)(nil) // it keeps nothing
	}
	return r, err
}

// keeper keeps the history of a run in a file.
type keeper interface {
	// note keeps words for an operation, and inject a fault that is in no plan; any goroutine may call them.
	note(id history.ID, text string)
	inject(history.Injection)
	// add keeps an operation. Its error is that of close.
	add(*history.Op)
	// flush writes what is to be written by now, and tells whether nothing is left to be written.
	flush(now time.Duration) bool
	// close ends the history; partial says why the run ended early, proven what clocks agree within if the header does
	// not.
	close(partial string, allowed bool, measured *history.Measured, proven history.Agreement) error
}

// Lane adds a lane of the suite itself, with room for so many operations.
func (r *Recording) Lane(slots int) *history.Lane {
	lane := history.NewLane(r.o.Clock, len(r.lanes), -1, slots, r.o.Wake)
	r.lanes = append(r.lanes[:len(r.lanes):len(r.lanes)], lane)
	return lane
}

// Clock is the run's clock.
func (r *Recording) Clock() *history.Clock { return r.o.Clock }

// Note keeps words for an operation that was not published yet; any goroutine may call it.
func (r *Recording) Note(id history.ID, text string) {
	r.tape.note(id, text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes[id] = text
}

// Words are those that an operation was given by Note.
func (r *Recording) Words(id history.ID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.notes[id]
}

// Inject adds a fault that is in no plan to the history and returns the number that its operations name it by; any
// goroutine may call it.
func (r *Recording) Inject(i history.Injection) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tape.inject(i)
	r.faults = append(r.faults[:len(r.faults):len(r.faults)], i)
	return int64(len(r.faults)) - 1
}

// Fault is the one that operations name by a number; any goroutine may call it.
func (r *Recording) Fault(number int64) history.Injection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults[number]
}

// Start begins to take in what is recorded.
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
		if r.o.Abandoned != nil { // the open calls of dead processes would hold the history back until the end
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
				now = final // what is shown is of then
			}
			r.o.Tell(now, final)
		}
	}
}

func (r *Recording) observe(op *history.Op) {
	r.tape.add(op)
	if r.reads != nil {
		r.reads.next = append(r.reads.next, *op) // it is shown in its place among what is read
		return
	}
	r.o.Observe(op)
}

// Stop ends the taking in; nothing is observed any more until Flush.
func (r *Recording) Stop() {
	close(r.done)
	r.drain.Wait()
}

// Flush takes in the rest, after Stop, when no lane is written any more. It counts how often writers had to wait for
// the reader.
func (r *Recording) Flush() (stalls int64) {
	r.merge.Flush(r.observe)
	for _, l := range r.lanes {
		stalls += int64(l.Stalls())
	}
	return stalls
}

// Close ends the file, after Flush, or of a run that did not begin; partial says why the run ended early, and allowed
// that this is as good as whole.
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
