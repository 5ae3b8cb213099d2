// Package witness reconstructs the history of a lock from the network traffic between programs and servers: its
// holders, and how each hold began and ended. It relies on effects, which the replication stream shows. If effects are
// not seen, it goes by the words of commands. An unclear outcome becomes Unknown, and is counted. The package does not
// judge.
package witness

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// Holder says how the reader tells holders apart.
type Holder struct {
	By  By
	Arg int // for ByArg: position of the argument in the command; the command name has position 0
}

// By is a way to tell holders apart.
type By string

const (
	// Auto goes by the token. If the token is not unique, it goes by the connection, provided that each connection
	// serves one holder at a time.
	Auto         By = "auto"
	ByToken      By = "token"
	ByConnection By = "connection" // the user promises that each connection serves one holder at a time
	ByArg        By = "arg"        // by an argument of the commands: Holder.Arg
)

// Options say which keys are read, and how.
type Options struct {
	Locks, Data []string // patterns of keys, in the syntax of KEYS
	Holder      Holder
	Sites       int           // number of independent servers that a lock uses; 0 = one
	Ours        bool          // the servers fail only by planned faults
	Epoch       time.Time     // date at which time stamps are zero
	Most        int           // number of operations that are kept; 0 = none, and there is no history
	Rolling     bool          // only the latest Most operations and the keys in use are kept; data keys cannot be read
	Violation   func(Finding) // called immediately for each violation that a server's stream proves; may be nil
	Notice      func(Notice)  // called immediately for each step of a lock, with the reader locked; may be nil
	Alone       bool
	// Dropped takes operations that a Rolling reader removes from memory, with the reader locked; may be nil.
	Dropped func(*Piece)
}

// Time limits.
const (
	answerBound = 2 * time.Second       // an effect waits this long for replies to commands that may have caused it
	groupBound  = 50 * time.Millisecond // after this time, all effects of a transaction have come
	effectBound = 2 * time.Second       // longest time from a reply to its effect
	waiterBound = 10 * time.Second      // a client that has not tried for this long no longer waits
	sweepEvery  = time.Second
	keepBound   = 30 * time.Second // a hold whose lease ended this long ago without a release is dropped
)

// Reader is a wire.Sink that reconstructs holds from requests and effects. It keeps the current holds, and operations.
type Reader struct {
	o           Options
	locks, data []pattern
	mu          sync.Mutex
	now         time.Duration // latest time stamp so far
	swept       time.Duration
	killed      time.Duration // time at which the programs were last killed

	servers map[int]*server
	ledgers map[place]*ledger
	active  map[*ledger]bool         // ledgers with requests or changes that wait
	endless map[*ledger]bool         // ledgers with a holder and no expiry
	closed  map[string]time.Duration // clients whose connection has ended since the last sweep
	books   map[subject]*book
	scripts map[string]*script
	flights map[flight]*sighting
	pages   map[subject]int32
	edition int                // it grows when pages get other numbers
	grants  map[uint64]granted // by the hash of the token
	sharing int                // number of requests for a lock by a connection that still held it
	sheets  map[subject]*sheet
	spans   map[string][]*span // indexed by the name of the holder: see who
	pooled  int64              // number of commands with a token on another connection than its grant
	// unreturned has the holds of each lock, if a connection does not show which client a command
	// came from; otherwise nil.
	unreturned map[int32]*stays

	diff diff // memory for the result of execute
	scribe
	Tallies
}

type server struct {
	tapped  bool
	replica bool          // its stream has the effects of its primary
	lost    time.Duration // time at which its stream last broke
	from    time.Duration // its effects are complete for requests after this time
	unseen  time.Duration // start of the first connection that is not parsed; 0 = all are parsed
	open    []*change     // changes of its last transaction, which may not be complete
	ahead   time.Duration // its clock is ahead of ours by at most this much
	behind  time.Duration // its clock is ahead of ours by at least this much
	order   []executed    // some of its last explained effects, in the order of its stream
}

// executed says that an effect, which was read at the time read, was executed after a request that was called at the
// time called. A server executes in the order of its stream. So all effects that were read later were executed after
// that call, too.
type executed struct{ read, called time.Duration }

// Limits of server.order: the shortest time between two entries, and the number of entries.
const (
	orderEvery = 10 * time.Millisecond
	orderMost  = 4096
)

// ran records an explained effect.
func (s *server) ran(read, called time.Duration) {
	if n := len(s.order); n > 0 {
		if last := s.order[n-1]; read < last.read+orderEvery {
			return
		} else if called = max(called, last.called); n == orderMost {
			s.order = append(s.order[:0], s.order[n/2:]...)
		}
	}
	s.order = append(s.order, executed{read, called})
}

// since returns a time before which an effect cannot have been executed. It follows from the effects that were read
// earlier.
func (s *server) since(read time.Duration) time.Duration {
	n, _ := slices.BinarySearchFunc(s.order, read, func(e executed, t time.Duration) int {
		return cmp.Compare(e.read, t)
	})
	if n == 0 {
		return 0
	}
	return s.order[n-1].called
}

// close ends the transaction that is being read.
func (s *server) close() {
	for _, c := range s.open {
		c.closed = true
	}
	s.open = nil
}

// subject is a key in a database, on all servers of a deployment or on all sites.
type subject struct {
	db  int
	key string
}

type place struct {
	server int
	subject
}

// granted counts the grants with one token.
type granted struct{ times, last int } // last is the number of operations before the last one

type flight struct{ conn, number int64 }

// sighting is a request that concerns a lock.
type sighting struct {
	*wire.Request
	words
	says     says
	answered bool
	lost     time.Duration // time at which it was known that no reply will come
	entries  []*entry      // one entry for each lock key of the request
	ops      []int         // indices of operations that were made before the reply came
}

// script has the text of a script, and the kinds of effects that it had so far.
type script struct {
	text                   string // in lower case; empty if it was too long to be kept
	grants, extends, frees bool
	tellsTime              bool // see timeLeft
	token                  int  // index of the token among the arguments after the keys; -1 = unknown
}

func NewReader(o Options) *Reader {
	o.Sites = max(o.Sites, 1)
	return &Reader{
		o: o, locks: patternsOf(o.Locks...), data: patternsOf(o.Data...),
		servers: map[int]*server{}, ledgers: map[place]*ledger{}, active: map[*ledger]bool{},
		endless: map[*ledger]bool{}, closed: map[string]time.Duration{}, books: map[subject]*book{},
		scripts: map[string]*script{}, flights: map[flight]*sighting{}, pages: map[subject]int32{},
		edition: 1, grants: map[uint64]granted{}, sheets: map[subject]*sheet{}, spans: map[string][]*span{},
		scribe: scribe{own: map[string][]int32{}, notes: map[history.ID]string{}, known: map[history.ID]bool{},
			doubted: map[*hold][]int{}, victims: map[int]*hold{}, unheld: map[history.ID]int32{}},
	}
}

// made returns the value of a key. If there is none, it first stores the given one.
func made[K comparable, V any](of map[K]*V, key K, first V) *V {
	v := of[key]
	if v == nil {
		v = new(V)
		*v, of[key] = first, v
	}
	return v
}

func (r *Reader) server(n int) *server { return made(r.servers, n, server{}) }

// Clock sets the two bounds of a server's clock: how far it is ahead of our wall clock.
func (r *Reader) Clock(n int, least, most time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.server(n)
	s.behind, s.ahead = least, most
}

// Sent implements wire.Sink.
func (r *Reader) Sent(q *wire.Request) {
	keys, flush := keysOf(q.Args), q.Args[0] == "FLUSHALL" || q.Args[0] == "FLUSHDB"
	if len(keys) == 0 && q.Args[0] != "SCRIPT" && !flush {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = max(r.now, q.Call)
	if flush {
		r.flushing(q)
		return
	}
	text := scriptText(q.Args)
	if text != "" && q.Args[0] == "SCRIPT" {
		r.script(digest(text)).is(text)
	}
	var s *sighting
	for _, key := range keys {
		if !matches(r.locks, key) {
			continue
		}
		if s == nil {
			s = &sighting{Request: q, words: understand(q.Args)}
			if s.intent == reads {
				break
			}
			if text != "" {
				r.script(s.script).is(text)
			}
		}
		l := r.ledger(place{q.Server, subject{q.DB, key}})
		l.asked = true
		l.sent(s)
	}
	if s == nil && len(keys) > 0 {
		r.elsewhere(keys[0])
	}
	if s != nil && s.intent != reads {
		r.flights[flight{q.Conn, q.Number}] = s
	}
}

// Request implements wire.Sink.
func (r *Reader) Request(q *wire.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Return != history.Forever {
		r.now = max(r.now, q.Return)
	}
	if len(r.o.Data) > 0 {
		r.use(q)
	}
	id := flight{q.Conn, q.Number}
	s := r.flights[id]
	if s == nil {
		return
	}
	delete(r.flights, id)
	r.Requests++
	s.Request, s.answered, s.lost = q, true, r.now
	if q.Lost || q.Return == history.Forever {
		s.says = nothing
	} else {
		s.says = s.words.answered(q)
		if k := r.scripts[s.script]; k != nil && s.intent == runs {
			s.says = k.answered(q, s.says)
		}
	}
	r.late(s)
	for _, e := range s.entries {
		r.answer(e)
	}
}

// Effect implements wire.Sink.
func (r *Reader) Effect(e *wire.Effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = max(r.now, e.At)
	s := r.server(e.Server)
	if len(s.open) > 0 && s.open[0].tx != e.Tx {
		s.close()
	}
	if name := e.Args[0]; name == "FLUSHALL" || name == "FLUSHDB" {
		r.flushed(e)
		return
	}
	for _, key := range keysOf(e.Args) {
		switch {
		case matches(r.locks, key):
			r.effect(s, e, key)
		case matches(r.data, key):
			r.stored(e, key)
		default:
			r.elsewhere(key)
		}
	}
}

// effect adds an effect to a key's ledger.
func (r *Reader) effect(s *server, e *wire.Effect, key string) {
	r.Effects++
	l := r.ledger(place{e.Server, subject{r.database(e), key}})
	if n := len(l.changes); n > 0 && e.Tx != 0 && l.changes[n-1].tx == e.Tx {
		l.changes[n-1].commands = append(l.changes[n-1].commands, forKey(e.Args, key))
	} else {
		c := &change{at: e.At, tx: e.Tx, closed: e.Tx == 0}
		c.commands = append(c.first[:0], forKey(e.Args, key))
		if l.changes = append(l.changes, c); !c.closed {
			s.open = append(s.open, c)
		}
	}
	r.settle(l, r.now)
}

// Event implements wire.Sink.
func (r *Reader) Event(e wire.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = max(r.now, e.At)
	switch e.Kind {
	case wire.TapBegan:
		v := r.server(e.Server)
		if v.tapped, v.replica = true, e.Replica; e.Missing {
			v.from = e.At
			r.forget(e)
		}
	case wire.TapLost:
		v := r.server(e.Server)
		if v.tapped {
			r.unheard(e.Server)
		}
		v.tapped, v.lost = false, e.At
		r.TapsLost++
		r.deafened(e.Server)
	case wire.Closed:
		if r.o.Holder.By != ByArg {
			r.closed[strconv.FormatInt(e.Conn, 10)] = e.At
		}
	case wire.PassedThrough:
		r.Passed++
		if v := r.server(e.Server); v.unseen == 0 {
			v.unseen = e.At
			r.deafened(e.Server)
		}
	}
}

// Tick lets time pass. It explains changes that have waited long enough, and drops holds that ended.
func (r *Reader) Tick(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = max(r.now, now)
	for _, s := range r.servers {
		if len(s.open) > 0 && r.now-s.open[0].at > groupBound {
			s.close()
		}
	}
	for l := range r.active {
		r.settle(l, r.now)
	}
	for _, b := range r.books {
		b.tick(r, r.now)
	}
	r.tellEndless()
	r.pass()
	if r.now-r.swept >= sweepEvery {
		r.swept = r.now
		r.sweep()
	}
}
