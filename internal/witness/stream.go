package witness

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// streamBound is the largest number of grants that a Stream keeps, in up to 100 MB. Longer runs are not compared.
const streamBound = 1 << 18

// mostAgainst is the largest number of contradictions in the result.
const mostAgainst = 20

// delivery is the longest time that a server takes to replicate a command that it has executed.
const delivery = time.Second

// Stream compares the operations of a run with the replication streams of its servers. It is a wire.Sink for taps;
// operations come through Observe. The lock must write its token into its key, as a value or a field. A lock that is
// handed on within a process cannot be compared, because servers do not see that.
type Stream struct {
	clock    *history.Clock
	mu       sync.Mutex
	locks    map[string]bool // keys of the locks
	servers  []*streamed
	sites    int
	states   map[place]*state
	writes   map[uint64][]*write // indexed by the hash of the token
	free     map[place]*write    // the last write of a key that is gone, until the next token is written there
	calls    []call
	longer   map[history.ID][]call // successful extensions by hold
	extended int                   // number of these extensions
	full     bool                  // some calls were not kept
	closed   time.Duration
	sum      history.Stream
}

type streamed struct {
	name    string
	site    int
	origin  string             // replication ID to which its offsets belong
	from    time.Duration      // time from which its stream is complete
	away    time.Duration      // time at which reading stopped; 0 = it is being read
	lost    [][2]time.Duration // periods of which a part is missing
	replica bool
}

type write struct {
	server     int
	at, gone   time.Duration // gone is the time of its deletion; 0 = it still exists
	offset     int64
	goneOffset int64
	until      time.Duration // end of its lease
	early      bool          // it was deleted before its lease ended
	by         string        // command that deleted it; empty if the server lost it
	next       uint64        // the token that was written to the key next
}

// call is an operation whose effect is searched for in the streams.
type call struct {
	kind         history.Kind
	known        bool // its outcome is OK
	signalled    bool // an Acquire after a message from the previous holder, which may have handed the lock over
	token        uint64
	hold         history.ID
	call, answer time.Duration
	worker       int32
	ttl          time.Duration // 0 = the lease does not end
}

// NewStream makes a Stream for the keys of locks. Each server has a name, and the number of its site.
func NewStream(clock *history.Clock, keys, names []string, sites []int) *Stream {
	s := &Stream{clock: clock, locks: map[string]bool{}, states: map[place]*state{}, writes: map[uint64][]*write{},
		free: map[place]*write{}, longer: map[history.ID][]call{}}
	for _, k := range keys {
		s.locks[k] = true
	}
	for i, name := range names {
		s.servers = append(s.servers, &streamed{name: name, site: sites[i], from: history.Forever})
		s.sites = max(s.sites, sites[i]+1)
	}
	return s
}

// Refused records that a server's stream cannot be read.
func (s *Stream) Refused(server int, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum.Breaks = append(s.sum.Breaks, fmt.Sprintf("%s: %v", s.servers[server].name, why))
}

// Close records the time at which all taps were closed.
func (s *Stream) Close(at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == 0 {
		s.closed = at
	}
}

// Sent does nothing, because taps see no requests.
func (s *Stream) Sent(*wire.Request) {}

// Request does nothing.
func (s *Stream) Request(*wire.Request) {}

// Effect implements wire.Sink.
func (s *Stream) Effect(e *wire.Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Args[0] == "FLUSHALL" || e.Args[0] == "FLUSHDB" {
		s.forget(e.Server, e)
		return
	}
	for _, key := range keysOf(e.Args) {
		if s.locks[key] {
			s.sum.Effects++
			s.effect(e, place{e.Server, subject{e.DB, key}})
		}
	}
}

func (s *Stream) effect(e *wire.Effect, at place) {
	is := made(s.states, at, state{})
	before := is.clone()
	is.wrote = nil
	is.execute(e.Args)
	for _, o := range before.owners {
		if _, has := is.owners.of(o.token); !has {
			s.free[at] = s.remove(o.token, e)
		}
	}
	for _, o := range is.owners {
		w := s.find(history.Hash(o.token), e.Server)
		if _, had := before.owners.of(o.token); !had || w == nil {
			w = s.write(history.Hash(o.token), e)
			if gone := s.free[at]; gone != nil {
				gone.next = history.Hash(o.token)
			}
			delete(s.free, at)
		}
		if w != nil {
			w.until = history.Forever
			if is.until > 0 {
				w.until = s.clock.At(time.UnixMilli(is.until))
			}
		}
	}
}

// find returns the last write of a token on a server; nil if there is none, or if it was deleted.
func (s *Stream) find(token uint64, server int) *write {
	for _, w := range slices.Backward(s.writes[token]) {
		if w.server == server && w.gone == 0 {
			return w
		}
	}
	return nil
}

func (s *Stream) write(token uint64, e *wire.Effect) *write {
	if s.sum.Overflow = s.sum.Overflow || len(s.writes) >= streamBound; s.sum.Overflow {
		return nil
	}
	w := &write{server: e.Server, at: e.At, offset: e.Offset}
	s.writes[token] = append(s.writes[token], w)
	return w
}

// remove records that a token is gone. It returns the write of the token; nil if that is not known.
func (s *Stream) remove(token string, e *wire.Effect) *write {
	w := s.find(history.Hash(token), e.Server)
	if w == nil {
		return nil
	}
	w.gone, w.goneOffset = e.At, e.Offset
	w.early = e.At < w.until
	if len(e.Args) > 0 {
		w.by = e.Args[0]
	}
	return w
}

// forget records that a server has lost its keys.
func (s *Stream) forget(server int, e *wire.Effect) {
	for at, is := range s.states {
		if at.server == server {
			for _, o := range is.owners {
				s.remove(o.token, e)
			}
			is.clear()
		}
	}
}

// Event implements wire.Sink.
func (s *Stream) Event(e wire.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.servers[e.Server]
	if s.closed > 0 {
		return
	}
	if e.Kind == wire.TapLost {
		v.away = e.At
		return
	}
	if e.Missing {
		v.lost = append(v.lost, [2]time.Duration{v.away, e.At})
		s.sum.Breaks = append(s.sum.Breaks, fmt.Sprintf("%s at %.3f s", v.name, v.away.Seconds()))
	}
	v.away = 0
	if e.Another {
		s.forget(e.Server, &wire.Effect{Server: e.Server, At: e.At})
	}
	v.from = min(v.from, e.At)
	if v.replica && !e.Replica && e.Before != "" {
		s.promoted(e)
	}
	v.replica, v.origin = e.Replica, e.History
}

// promoted compares the writes of a replica that became primary with those of the previous primary.
func (s *Stream) promoted(e wire.Event) {
	before := slices.IndexFunc(s.servers, func(v *streamed) bool { return v.origin == e.Before && !v.replica })
	if before < 0 {
		return
	}
	t := history.Takeover{Node: s.servers[e.Server].name, Before: s.servers[before].name, At: e.At, Upto: e.Upto}
	for _, list := range s.writes {
		for _, w := range list {
			switch {
			case w.server != before:
			case w.offset > t.Upto && w.gone == 0:
				t.Grants++
				t.Last = max(t.Last, w.offset)
			case w.offset <= t.Upto && w.gone > 0 && w.goneOffset > t.Upto:
				t.Released++
				t.Last = max(t.Last, w.goneOffset)
			}
		}
	}
	s.sum.Forgot = append(s.sum.Forgot, t)
}

// Observe adds an operation of the run. Only one goroutine may call it.
func (s *Stream) Observe(op *history.Op) {
	if op.Kind == history.Extend && op.Outcome == history.OK && op.TTL > 0 && s.extended < 2*streamBound {
		s.extended++
		s.longer[op.Hold] = append(s.longer[op.Hold], call{call: op.Call, answer: op.Return, ttl: op.TTL})
	}
	outermost := op.Kind == history.Acquire && op.Hold == op.ID && op.Token != 0 && op.Permits == 0
	if op.Outcome == history.Failed || !outermost && (op.Kind != history.Release || op.Value > 0) || s.full {
		return
	}
	s.full = len(s.calls) == 2*streamBound
	s.calls = append(s.calls, call{op.Kind, op.Outcome == history.OK, op.Woken == history.Signal, op.Token, op.Hold,
		op.Call, op.Return, op.Worker, op.TTL})
}

// Sum returns the result of the comparison. All taps must be closed before.
func (s *Stream) Sum() *history.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	tokens := map[history.ID]uint64{}
	readable, handed := false, false
	for i := range s.calls {
		if c := &s.calls[i]; c.kind == history.Acquire {
			tokens[c.hold] = c.token
			readable = readable || c.known && len(s.writes[c.token]) > 0
			handed = handed || c.known && c.signalled && len(s.writes[c.token]) == 0 &&
				s.whole(c.call, c.answer+delivery)
		}
	}
	s.sum.Overflow = s.sum.Overflow || s.full
	if !readable || handed || s.sum.Overflow { // a lock that is handed on within a process is invisible to servers
		return &s.sum
	}
	s.earlyEnds(tokens)
	for i := range s.calls {
		c := &s.calls[i]
		if c.token = tokens[c.hold]; c.token == 0 {
			continue
		}
		count, written := &s.sum.Grants, func(w *write) bool { return w.at >= c.call }
		executed, none := 2*s.on(c.token, written) > s.sites, s.on(c.token, written) == 0
		if c.kind == history.Release {
			count = &s.sum.Releases
			executed = 2*s.on(c.token, func(w *write) bool { return w.gone >= c.call && w.early }) > s.sites
			// an expiry may hide the effect
			none = s.on(c.token, func(w *write) bool { return w.gone >= c.call }) == 0
		}
		switch {
		case c.known:
			s.compare(c)
			continue
		case executed:
			count.Executed++
		case none && s.whole(c.call, s.closed):
			count.Without++
		}
		count.Unknown++
	}
	return &s.sum
}

// compare searches for the effect of an answered operation. For a release, an expiry may have come first.
func (s *Stream) compare(c *call) {
	if !s.whole(c.call, c.answer+delivery) {
		return
	}
	s.sum.Compared++
	all := s.on(c.token, func(*write) bool { return true })
	executed := 2*all > s.sites    // a lock that the previous holder hands over was written before the call
	if c.kind == history.Release { // a replica may be late, and a busy machine reads the stream late
		removed := s.on(c.token, func(w *write) bool { return w.gone > 0 && (w.early || w.gone <= c.answer+delivery) })
		executed = 2*(all-removed) <= s.sites
	}
	if c.kind == history.Acquire && !executed && all > 0 && len(s.sum.Minority) < mostEarly {
		s.sum.Minority = append(s.sum.Minority, history.Minority{Token: c.token, Sites: all})
	}
	if !executed && len(s.sum.Against) < mostAgainst {
		s.sum.Against = append(s.sum.Against,
			fmt.Sprintf("the %s of w%02d at %.6f s was answered, and no stream has its effect", c.kind, c.worker,
				c.call.Seconds()))
	}
}

// on returns the number of sites that have a write of the token for which so(write) is true.
func (s *Stream) on(token uint64, so func(*write) bool) int {
	sites := map[int]bool{}
	for _, w := range s.writes[token] {
		if so(w) {
			sites[s.servers[w.server].site] = true
		}
	}
	return len(sites)
}

// whole tells whether all streams were read without a gap from one time to another.
func (s *Stream) whole(from, to time.Duration) bool {
	return from+delivery <= s.closed && to <= s.closed && !slices.ContainsFunc(s.servers, func(v *streamed) bool {
		return v.from > from || v.away > 0 && v.away <= to ||
			slices.ContainsFunc(v.lost, func(gap [2]time.Duration) bool { return gap[0] <= to && from <= gap[1] })
	})
}
