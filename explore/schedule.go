package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/workload"
)

// Limits of a schedule.
const (
	mostSteps = 4000
	mostRest  = 30 * time.Second
	afterlife = time.Minute // time for the lock's goroutines to end when everything is closed
	// longest sleep of the scheduler when no message waits; it must empty the clients' lanes (logs) in time
	nap = 300 * time.Millisecond
)

// schedule is one run of the clients. Some deviations are given; all other decisions take the default.
type schedule struct {
	w       *world
	o       *Options
	spec    locks.Spec
	servers []*memory
	clients []*client
	views   *views
	suite   *history.Lane
	merge   *history.Merge
	history *history.History
	// seen tells whether another schedule was in this state, so that nothing new can follow; nil
	// = do not compare states
	seen  func(*schedule) bool
	given []Choice
	draw  func(at, options int) int // draws an option at random where none is given; nil = take the first

	current  int         // the client that acted last; -1 if time has passed since
	paused   []time.Time // by client: when its pause ends
	hung     []time.Time // by site: until when it executes nothing
	dead     []bool      // by site: it never replies again
	crashed  []bool
	died     []time.Duration // by client: when it died
	unheard  []history.Op    // operations of dead clients that have no end
	healing  []healing
	states   []passed  // states after the last given decision
	ways     []uint64  // for each option of a decision: the state to which it leads; nil = do not compare states
	asked    int       // number of events that had arrived at the time quiet
	quiet    time.Time // the last time at which a new event was seen
	state    fingerprint
	taken    []Choice
	deviated time.Duration // when the last given deviation was taken
	options  []int         // by decision: number of options
	list     []option      // options of the current decision
	acts     []act         // deviations of the current decision
	merged   bool
	wrong    error // why the schedule proves nothing: it has diverged, or was too long
}

// passed is a state of a schedule after a number of decisions.
type passed struct {
	state     uint64
	decisions int
}

// errDiverged means that a given deviation was not possible; errCut, that the schedule was too long.
var (
	errDiverged = errors.New("the replay was not the same")
	errCut      = errors.New("the schedule was too long")
)

// play runs a schedule in virtual time, in a bubble of testing/synctest. It records a trace if told is true.
func play(t *testing.T, spec locks.Spec, o *Options, known *kit, given []Choice, seen func(*schedule) bool, told bool,
	draw func(at, options int) int) (s *schedule, err error) {
	o.say(beginsSchedule, nil)
	servers, err := known.servers(o.Sites)
	if err != nil {
		return nil, err
	}
	left := inBubble(t, func(t *testing.T) {
		w := newWorld(o.Clients, o.Sites, known)
		if told {
			w.trace = &trace{clock: w.clock, sites: o.Sites}
		}
		s = newSchedule(w, spec, o)
		s.servers, s.given, s.seen, s.draw = servers, given, seen, draw
		if err = s.open(); err == nil {
			s.run(t.Context())
		}
		s.close()
		<-time.After(afterlife) // a library may sleep before it notices that it was closed
	})
	if s != nil && s.w.hung != nil && left != nil { // the call never returned, so its goroutine is left
		s.wrong, left = nil, nil
	}
	return s, errors.Join(err, left)
}

func newSchedule(w *world, spec locks.Spec, o *Options) *schedule {
	return &schedule{
		w: w, o: o, spec: spec, current: -1, paused: make([]time.Time, o.Clients), hung: make([]time.Time, o.Sites),
		dead: make([]bool, o.Sites), died: make([]time.Duration, o.Clients), crashed: make([]bool, o.Clients),
		state: fingerprint{make([]uint64, o.Clients), make([]uint64, o.Sites+1), make([]uint64, o.Sites+1)},
	}
}

func (s *schedule) open() error {
	for _, m := range s.servers {
		m.ClockTTL(true) // keys expire in virtual time
	}
	s.views = &views{fenced: s.spec.Claims.Fences, counts: map[string]workload.Count{}}
	s.suite = history.NewLane(s.w.clock, 3*s.o.Clients, -1, laneSlots, make(chan struct{}, 1))
	lanes := []*history.Lane{s.suite}
	process := &locks.Process{}
	for i := range s.o.Clients {
		if i > 0 && !s.o.Together {
			process = &locks.Process{}
		}
		c, err := s.openClient(i, process)
		if err != nil {
			return fmt.Errorf("open %s: %w", s.spec.Name, err)
		}
		s.clients = append(s.clients, c)
		lanes = append(append(lanes, c.lanes[:]...), c.more...)
	}
	s.merge = history.NewMerge(s.w.clock, lanes)
	s.history = &history.History{Header: s.header(), Notes: map[history.ID]string{}, Ops: make([]history.Op, 0, 48)}
	return nil
}

// header returns what a judge must know about the run.
func (s *schedule) header() history.Header {
	processes := s.o.Clients
	if s.o.Together {
		processes = 1
	}
	idle := time.Duration(0)
	if s.spec.Claims.Wakes {
		// A woken client takes a free lock immediately, because no machine is slow in virtual time. A polling client
		// may be refused again and again, so a lock without wake-ups keeps the default.
		idle = time.Millisecond
	}
	all, callers := len(pages(&s.spec.Claims)), 0
	if all > 1 {
		callers = s.o.Clients
	}
	return history.Header{
		Name: "explore-" + s.spec.Name, Topology: fmt.Sprintf("%d in memory, virtual time", s.o.Sites),
		Lock: s.spec.Name, Workers: all * s.o.Clients, Callers: callers, Processes: processes, Keys: all, Retry: retry,
		Wait: patience, Sites: s.o.Sites, Nodes: s.o.Sites,
		Counter: "memory", Fenced: s.views.fenced, Claims: s.spec.Claims,
		Bounds: history.Bounds{Round: serverRound, Recovery: time.Millisecond, Gap: time.Millisecond, Idle: idle,
			Linger: s.spec.Lingers(s.o.TTL)},
	}
}

// run lets the clients work until all have finished, and records the keys that are left.
func (s *schedule) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	for _, c := range s.clients {
		working.Go(func() {
			if s.w.step(c.number, start, nil) {
				due := c.workers.Run(ctx, ctx)
				s.w.finish(c.number)
				s.w.hangs(due.Hung)
			}
		})
	}
	s.quiet = time.Now()
	s.schedule()
	if !s.merged && s.wrong == nil {
		s.ending()
		s.merge.Flush(s.keep)
		s.history.Ops = append(s.history.Ops, s.unheard...)
	}
	s.o.say(endsSchedule, nil)
	cancel()
	s.w.end()
	working.Wait() // before closing, because a client that still works may open something
	for _, c := range s.clients {
		c.close()
	}
}

// close ends everything that is left in the bubble.
func (s *schedule) close() {
	for _, m := range s.servers {
		m.end()
	}
	s.w.links.Wait()
}

// keep adds an operation to the history. A dead client adds nothing after its death, although its goroutine goes on.
// An operation that it had begun before has no end.
func (s *schedule) keep(op *history.Op) {
	switch w := s.history.Caller(op.Worker); {
	case w < 0 || !s.crashed[w] || op.Return <= s.died[w]:
		s.history.Ops = append(s.history.Ops, *op)
		s.look(op)
	case op.Call < s.died[w]:
		o := *op
		o.Return, o.Outcome, o.Reason, o.Until = history.Forever, history.Unknown, history.None, 0
		s.unheard = append(s.unheard, o)
	}
}

// look records each key that still has the token of a refused try for several keys. The try must have released the
// keys that it had taken.
func (s *schedule) look(op *history.Op) {
	if !s.spec.Claims.Sets || op.Kind != history.Acquire || op.Outcome != history.Failed || len(s.servers) > 1 {
		return
	}
	for i, m := range s.servers {
		for key, page := range pages(&s.spec.Claims) {
			if text, ttl := holding(m, page.Lock); text != "" && history.Hash(text) == op.Token {
				now := s.w.clock.Now()
				s.suite.Mark(&history.Op{Kind: history.Sight, Worker: -1, Key: int32(key), Call: now, Value: int64(i),
					Token: op.Token, Until: now + ttl, Outcome: history.OK})
			}
		}
	}
}

// able tells whether an event can happen now. Without fencing, a store and the last load of a reader are never
// delayed. The reason is that the client has just looked at the clock, and no lock can prevent a delay after that.
func (s *schedule) able(e *event) bool {
	now := time.Now()
	switch {
	case s.crashed[e.client]:
		return false
	case s.punctual(e):
		return true
	case e.kind == request && now.Before(s.hung[e.site]):
		return false
	}
	return !now.Before(s.paused[e.client]) && !now.Before(e.held)
}

func (s *schedule) punctual(e *event) bool {
	return e.kind == reload || e.kind == store && !s.views.fenced
}

// schedule makes one decision after another.
func (s *schedule) schedule() {
	for {
		synctest.Wait()       // now all goroutines wait for a message or for time
		s.merge.Drain(s.keep) // a client must never wait for room in its lane
		if s.panicked() != "" {
			return
		}
		if s.heal(); s.loseDead() {
			continue
		}
		ready := s.w.ready(s.current, s.able)
		if len(ready) == 0 {
			if s.w.done(func(c int) bool { return !s.crashed[c] }) || s.joins() || !s.rest() {
				return
			}
			continue
		}
		if len(s.options) == mostSteps {
			s.wrong = fmt.Errorf("%w: %d steps", errCut, mostSteps)
			return
		}
		if s.decide(s.alternatives(ready)); s.merged || s.wrong != nil {
			return
		}
	}
}

// rest lets time pass until something arrives, or until a pause or another deviation ends. It returns false if the
// schedule is too long.
func (s *schedule) rest() bool {
	most := nap
	for i, until := range s.paused {
		if left := time.Until(until); left > 0 && !s.crashed[i] {
			most = min(most, left)
		}
	}
	for _, until := range s.hung {
		if left := time.Until(until); left > 0 {
			most = min(most, left)
		}
	}
	for _, e := range s.w.ready(-1, func(e *event) bool { return time.Now().Before(e.held) }) {
		most = min(most, time.Until(e.held))
	}
	before := time.Now()
	s.w.rest(most)
	synctest.Wait()
	if time.Now().After(before) {
		s.current = -1
	}
	if asked := s.w.asked(); asked != s.asked {
		s.asked, s.quiet = asked, time.Now()
	} else if time.Since(s.quiet) >= mostRest {
		s.wrong = fmt.Errorf("%w: no client asked for anything for %v", errCut, mostRest)
	}
	return s.wrong == nil
}

// decide chooses and takes an option of a decision. If a deviation is given for this decision, it takes that one.
// Otherwise it takes a random option if options are drawn, and the first option if not. It takes none if the given
// deviation is impossible, or if the schedule joins another one.
func (s *schedule) decide(options []option) {
	at, number, due := len(s.options), 0, len(s.given) > len(s.taken)
	s.w.mu.Lock()
	s.state.sent(s.w.pending)
	s.w.mu.Unlock()
	if due && s.given[len(s.taken)].At == at {
		want := s.given[len(s.taken)]
		number = want.Option
		if number >= len(options) || want.of > 0 && want.of != len(options) || want.What != "" &&
			want.What != options[number].what() {
			s.wrong = fmt.Errorf("%w: decision %d has no option %d, %s", errDiverged, at, number, want.What)
			return
		}
		s.deviate(Choice{At: at, Option: number, What: options[number].what()})
	} else if s.joins() {
		return
	} else if s.draw != nil {
		if number = s.draw(at, len(options)); number > 0 {
			s.deviate(Choice{At: at, Option: number, What: options[number].what()})
		}
	}
	if !due && s.seen != nil && len(s.given) < s.o.Deviations {
		s.ways = append(s.ways, s.leads(options[1:])...)
	}
	s.options = append(s.options, len(options))
	s.take(options[number])
}

// joins tells whether all given deviations were taken and another schedule was in this state. Then the schedule ends.
func (s *schedule) joins() bool {
	s.merged = len(s.given) == len(s.taken) && s.seen != nil && s.seen(s)
	return s.merged
}

func (s *schedule) deviate(c Choice) {
	s.deviated = s.w.clock.Now()
	s.taken = append(s.taken, c)
	s.o.say(takesDeviation, &c)
}

// ending waits until the leases of dead clients have ended. Then it records the counter and the keys that are left on
// the servers: the tokens, and the rest of the TTLs.
func (s *schedule) ending() {
	if slices.Contains(s.crashed, true) { // locks of dead clients count as left over only after their lease
		s.sleep(2 * s.o.TTL)
	}
	for key, page := range pages(&s.spec.Claims) {
		n := s.views.counts[page.Views]
		s.suite.Mark(&history.Op{Kind: history.Final, Worker: -1, Key: int32(key), Call: s.w.clock.Now(),
			Value: n.Views, Seen: n.Writer, Outcome: history.OK})
		for i := range s.o.Sites {
			if s.dead[i] {
				continue // the server is dead, so nothing can be released there
			}
			text, ttl := holding(s.servers[i], page.Lock)
			token, now, until := history.Hash(text), s.w.clock.Now(), history.Forever
			if ttl > 0 {
				until = now + ttl
			}
			if token != 0 {
				s.suite.Mark(&history.Op{Kind: history.Found, Worker: -1, Key: int32(key), Call: now, Value: int64(i),
					Token: token, Until: until, Outcome: history.OK})
			}
		}
	}
}
