// Package witness reads a history of a lock from the messages between programs and servers: the holders, their grants,
// and the commands that ended them. It goes by effects, and by the words of commands only where no effects are seen. An
// outcome that it cannot tell is Unknown, and counted. It judges nothing.
package witness

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// Holder is how holders are told apart.
type Holder struct {
	By  By
	Arg int // of ByArg: which argument of its commands, counted from the name, which is 0
}

// By is a way to tell holders apart.
type By string

// The ways.
const (
	// by the token; where that is not unique, by the connection, if each serves one holder at a time
	Auto         By = "auto"
	ByToken      By = "token"      // by the token alone
	ByConnection By = "connection" // each connection serves one holder at a time: that is promised
	ByArg        By = "arg"        // by an argument
)

// Options say which keys are read, and how.
type Options struct {
	Locks, Data []string // patterns of keys, as KEYS has them
	Holder      Holder
	Sites       int           // independent servers that a lock stands on; 0 = one
	Ours        bool          // the servers fail by planned faults alone
	Epoch       time.Time     // when the clock of the stamps was 0
	Most        int           // so many operations are kept, and no more; 0 = none, and no history is made
	Rolling     bool          // the latest of Most are kept, and keys in use, for a watch of weeks; data cannot be
	Violation   func(Finding) // is called at once for a violation that a server's stream shows; nil = it is not
	Notice      func(Notice)  // is called at once for each step of a lock, with the reader locked; nil = it is not
	Alone       bool          // nothing but streams is read, each for itself
	// Dropped takes the operations that a Rolling reader keeps no longer, with the reader locked; nil = none does.
	Dropped func(*Piece)
}

// Times that bound waiting.
const (
	answerBound = 2 * time.Second       // an effect waits so long for the answers to commands that may have caused it
	groupBound  = 50 * time.Millisecond // a transaction's effects are all there by then
	effectBound = 2 * time.Second       // an effect comes at most so long after the answer
	waiterBound = 10 * time.Second      // a client that has not tried for so long waits no longer
	sweepEvery  = time.Second
	keepBound   = 30 * time.Second // a hold that was over for so long, and was not given back, is forgotten
)

// Reader is a wire.Sink that reads holds out of requests and effects. It keeps those that are open, and the operations.
type Reader struct {
	o      Options
	mu     sync.Mutex
	now    time.Duration // the latest stamp that was seen
	swept  time.Duration
	killed time.Duration // when the programs were killed last

	servers map[int]*server
	ledgers map[place]*ledger
	active  map[*ledger]bool // with something that waits
	endless map[*ledger]bool // with a holder and no end
	books   map[subject]*book
	scripts map[string]*script
	flights map[flight]*sighting
	pages   map[subject]int32
	grants  map[string]int // by token: how often it was granted
	sheets  map[subject]*sheet
	spans   map[string][]*span // by holder
	// How many holders have each lock, where connections do not tell them apart; nil = they do.
	unreturned map[int32]*stays

	scribe
	Tallies
}

// server is the state of one.
type server struct {
	tapped  bool
	replica bool          // its effects are those of another one
	lost    time.Duration // its stream broke last
	from    time.Duration // its effects are complete for requests from then on
	unseen  time.Duration // since then a connection to it is passed on unseen; 0 = none is
	open    []*change     // of its last transaction: more may belong to them
	ahead   time.Duration // its clock minus ours, at most
	behind  time.Duration // ... at least
}

// close ends the transaction that is read.
func (s *server) close() {
	for _, c := range s.open {
		c.closed = true
	}
	s.open = nil
}

// subject is a key in a database: of all servers of a deployment, or of all sites.
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
	lost     time.Duration // when it was known that it has no answer
	entries  []*entry      // one for each lock that it concerns
	ops      []int         // that tell of it although it was not answered yet
}

// script is the knowledge of a script by its effects.
type script struct {
	text                   string // in small letters, if it was short enough to be kept
	grants, extends, frees bool
	token                  int // of its arguments that are no keys: the token of its grants; -1 = none
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

// made returns the value of a key. If there is none, it is the given one from then on.
func made[K comparable, V any](of map[K]*V, key K, first V) *V {
	v := of[key]
	if v == nil {
		v = new(V)
		*v, of[key] = first, v
	}
	return v
}

func (r *Reader) server(n int) *server { return made(r.servers, n, server{}) }

// Clock says by how much a server's clock is ahead of the wall clock of ours: between two bounds.
func (r *Reader) Clock(n int, least, most time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.server(n)
	s.behind, s.ahead = least, most
}

// Pattern is the pattern of locks that a key is counted under.
func (o *Options) Pattern(key string) string {
	i := slices.IndexFunc(o.Locks, func(p string) bool { return matches([]string{p}, key) })
	return o.Locks[max(i, 0)]
}

// matches tells whether a key is one of those that are looked at.
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

// effect adds one to a key.
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

// flushed clears every key of a server, or of one database.
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

// deafened takes note that neither the commands of a connection nor the effects on its server are seen any more: any
// lock of that server may have been changed.
func (r *Reader) deafened(server int) {
	if v := r.server(server); v.unseen > 0 && !v.tapped && !v.replica {
		r.blind = append(r.blind, history.Op{Key: -1, Value: int64(server), Call: r.now})
	}
}

// Tick lets time pass: changes that waited for long enough are settled, and holds that are over are forgotten.
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
