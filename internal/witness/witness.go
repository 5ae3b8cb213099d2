// Package witness reconstructs the history of a lock from the network traffic between programs and servers: who held
// it, when it was granted, and how it was released. It relies on effects (from the replication stream), and on the
// words of commands only where effects are not seen. An unclear outcome is Unknown, and counted. It judges nothing.
package witness

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// Holder says how holders are told apart.
type Holder struct {
	By  By
	Arg int // for ByArg: which argument of the commands, counted from the command name, which is 0
}

// By is a way to tell holders apart.
type By string

// The ways.
const (
	// Auto: by the token or, if that is not unique, by the connection, if each serves one holder at a time.
	Auto         By = "auto"
	ByToken      By = "token"      // by the token only
	ByConnection By = "connection" // each connection serves one holder at a time, as the user promises
	ByArg        By = "arg"        // by an argument
)

// Options say which keys are read, and how.
type Options struct {
	Locks, Data []string // patterns of keys, in the syntax of KEYS
	Holder      Holder
	Sites       int           // number of independent servers that a lock uses; 0 = one
	Ours        bool          // the servers fail only by planned faults
	Epoch       time.Time     // date of the zero of time stamps
	Most        int           // how many operations are kept; 0 = none, and no history is made
	Rolling     bool          // only the latest Most operations and keys in use are kept; data keys cannot be read
	Violation   func(Finding) // called at once for a violation that a server's stream proves; may be nil
	Notice      func(Notice)  // called at once for each step of a lock, with the reader locked; may be nil
	Alone       bool          // only replication streams are read, each independently
	// Dropped takes operations that a Rolling reader removes from memory, with the reader locked; may be nil.
	Dropped func(*Piece)
}

// Bounds for waiting.
const (
	answerBound = 2 * time.Second       // how long an effect waits for replies to commands that may have caused it
	groupBound  = 50 * time.Millisecond // after this time, all effects of a transaction have come
	effectBound = 2 * time.Second       // how long after the reply an effect comes at the latest
	waiterBound = 10 * time.Second      // a client that has not tried for this long waits no longer
	sweepEvery  = time.Second
	keepBound   = 30 * time.Second // a hold that ended this long ago, and was not released, is dropped
)

// Reader is a wire.Sink that reconstructs holds from requests and effects. It keeps current holds, and operations.
type Reader struct {
	o      Options
	mu     sync.Mutex
	now    time.Duration // latest time stamp that was seen
	swept  time.Duration
	killed time.Duration // when the programs were last killed

	servers map[int]*server
	ledgers map[place]*ledger
	active  map[*ledger]bool // those with something that waits
	endless map[*ledger]bool // those with a holder and no expiry
	books   map[subject]*book
	scripts map[string]*script
	flights map[flight]*sighting
	pages   map[subject]int32
	grants  map[string]int // token -> how often it was granted
	sheets  map[subject]*sheet
	spans   map[string][]*span // by holder
	// unreturned is how many holders each lock has, if connections do not tell them apart; nil = they do.
	unreturned map[int32]*stays

	scribe
	Tallies
}

// server is the state of a server.
type server struct {
	tapped  bool
	replica bool          // it is a replica, so its effects are those of its primary
	lost    time.Duration // when its stream last broke
	from    time.Duration // its effects are complete for requests after this time
	unseen  time.Duration // since when a connection to it is not parsed; 0 = all are
	open    []*change     // of its last transaction, to which more may belong
	ahead   time.Duration // by how much its clock is ahead of ours at most
	behind  time.Duration // ... at least
	order   []executed    // some of its last explained effects, in the order of its stream
}

// executed says that the effect that was read at a time was executed after its request was called. A server executes
// in the order of its stream, so the same is true of all effects that were read later, whoever asked for them.
type executed struct{ read, called time.Duration }

// How far apart the effects in server.order are, and how many there are.
const (
	orderEvery = 10 * time.Millisecond
	orderMost  = 4096
)

// ran adds an explained effect.
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

// since is a time that an effect was not executed before, by those that were read earlier.
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

// subject is a key in a database: on all servers of a deployment, or on all sites.
type subject struct {
	db  int
	key string
}

// place is a key on a server.
type place struct {
	server int
	subject
}

// flight identifies a request.
type flight struct{ conn, number int64 }

// sighting is a request that concerns a lock.
type sighting struct {
	*wire.Request
	words
	says     says
	answered bool
	lost     time.Duration // when it was known that it has no reply
	entries  []*entry      // one for each lock that it concerns
	ops      []int         // operations that were made of it before it was answered
}

// script is what is known about a script by its effects.
type script struct {
	text                   string // in lower case, if it was short enough to be kept
	grants, extends, frees bool
	token                  int // which of its arguments, apart from keys, is the token of its grants; -1 = none
}

// NewReader makes a reader.
func NewReader(o Options) *Reader {
	o.Sites = max(o.Sites, 1)
	return &Reader{
		o: o, servers: map[int]*server{}, ledgers: map[place]*ledger{}, active: map[*ledger]bool{},
		endless: map[*ledger]bool{}, books: map[subject]*book{},
		scripts: map[string]*script{}, flights: map[flight]*sighting{}, pages: map[subject]int32{},
		grants: map[string]int{}, sheets: map[subject]*sheet{}, spans: map[string][]*span{},
		scribe: scribe{notes: map[history.ID]string{}, known: map[history.ID]bool{}, doubted: map[*hold][]int{},
			victims: map[int]*hold{}},
	}
}

// made returns the value of a key; if there is none, it stores the given one.
func made[K comparable, V any](of map[K]*V, key K, first V) *V {
	v := of[key]
	if v == nil {
		v = new(V)
		*v, of[key] = first, v
	}
	return v
}

func (r *Reader) server(n int) *server { return made(r.servers, n, server{}) }

// Clock says by how much a server's clock is ahead of our wall clock: between two bounds.
func (r *Reader) Clock(n int, least, most time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.server(n)
	s.behind, s.ahead = least, most
}

// Pattern returns the pattern under which a key's lock is counted.
func (o *Options) Pattern(key string) string {
	i := slices.IndexFunc(o.Locks, func(p string) bool { return matches([]string{p}, key) })
	return o.Locks[max(i, 0)]
}

// matches tells whether a key matches one of the patterns.
func matches(patterns []string, key string) bool {
	for _, p := range patterns {
		if head, ok := strings.CutSuffix(p, "*"); ok && !strings.ContainsAny(head, `*?[\`) {
			if strings.HasPrefix(key, head) {
				return true
			}
			continue
		}
		if ok, err := path.Match(p, key); ok && err == nil {
			return true
		}
	}
	return false
}

// Sent implements wire.Sink.
func (r *Reader) Sent(q *wire.Request) {
	keys := keysOf(q.Args)
	if len(keys) == 0 && q.Args[0] != "SCRIPT" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = max(r.now, q.Call)
	if text := scriptText(q.Args); text != "" {
		r.script(digest(text)).text = strings.ToLower(text)
	}
	var s *sighting
	for _, key := range keys {
		if !matches(r.o.Locks, key) {
			continue
		}
		if s == nil {
			s = &sighting{Request: q, words: understand(q.Args)}
			if s.intent == reads {
				break
			}
		}
		l := r.ledger(place{q.Server, subject{q.DB, key}})
		l.asked = true
		l.sent(s)
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
		case matches(r.o.Locks, key):
			r.effect(s, e, key)
		case matches(r.o.Data, key):
			r.stored(e, key)
		}
	}
}

// effect adds an effect to a key.
func (r *Reader) effect(s *server, e *wire.Effect, key string) {
	r.Effects++
	l := r.ledger(place{e.Server, subject{r.database(e), key}})
	if n := len(l.changes); n > 0 && e.Tx != 0 && l.changes[n-1].tx == e.Tx {
		l.changes[n-1].commands = append(l.changes[n-1].commands, e.Args)
	} else {
		c := &change{at: e.At, tx: e.Tx, closed: e.Tx == 0, commands: [][]string{e.Args}}
		if l.changes = append(l.changes, c); !c.closed {
			s.open = append(s.open, c)
		}
	}
	r.active[l] = true
	r.settle(l, r.now)
}

// flushed empties every key of a server, or of one of its databases.
func (r *Reader) flushed(e *wire.Effect) {
	for at, l := range r.ledgers {
		if at.server == e.Server && (at.db == r.database(e) || e.Args[0] == "FLUSHALL") {
			l.changes = append(l.changes, &change{at: e.At, closed: true, commands: [][]string{{"DEL", at.key}}})
			r.active[l] = true
		}
	}
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
	case wire.PassedThrough:
		r.Passed++
		if v := r.server(e.Server); v.unseen == 0 {
			v.unseen = e.At
			r.deafened(e.Server)
		}
	}
}

// deafened notes that neither a connection's commands nor its server's effects are seen: any lock may have changed.
func (r *Reader) deafened(server int) {
	if v := r.server(server); v.unseen > 0 && !v.tapped && !v.replica {
		r.blind = append(r.blind, history.Op{Key: -1, Value: int64(server), Call: r.now})
	}
}

// Tick lets time pass: changes that have waited long enough are explained, and holds that have ended are dropped.
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
