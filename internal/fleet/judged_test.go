package fleet

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// reads returns the clock's time when the coordinator's clock shows t.
func (w *wrong) reads(t int64) int64 {
	at := t - w.shift
	for range 4 { // the drift is less than a thousandth, so that each step is a thousand times closer
		at -= w.truth(at) - t
	}
	return at
}

// remote records the actions of an agent with its own clock. It sends them, with exchanges, over its own network.
type remote struct {
	wrong
	agent
	r        *rand.Rand
	up, down int64
	next     int64 // time on its clock at which the next exchange is due
	last     int64 // time on the coordinator's clock at which its worker was ready
	stepAt   int64 // time on its clock at which the clock is stepped
	step     int64 // size of that step; 0 = there is no step
	ended    bool  // the coordinator accepts nothing more from it
	w        frame
}

// newRemote makes an agent on a new machine, or on the machine of another agent.
func newRemote(r *rand.Rand, process int, beside *remote) *remote {
	far := [...]float64{2e5, 5e6}[r.IntN(2)]
	m := &remote{r: r, wrong: wrong{shift: r.Int64N(2e15) - 1e15}, up: int64(r.ExpFloat64() * far),
		down: int64(r.ExpFloat64() * far)}
	m.began = -m.shift
	for range 8 {
		m.speed = append(m.speed, 900*r.Float64()-450)
	}
	at := &host{number: process}
	if beside != nil {
		m.wrong, at = beside.wrong, beside.host
	}
	m.agent = agent{host: at, r: &run{f: &Fleet{o: Options{MaxSlack: time.Hour}}}, feed: &history.Feed{},
		number: process}
	m.scale = scale{track: &m.track, from: m.reads(0), to: 0}
	m.next = m.scale.from
	m.exchange(m.scale.from + 1)
	m.track.add(m.w.Exchanges[0])
	m.track.fix(m.scale.from)
	return m
}

// shows returns the clock's time when it would show at without the step.
func (m *remote) shows(at int64) int64 {
	if m.step > 0 && at > m.stepAt {
		at += m.step
	}
	return at
}

// stepped makes the clock of some agents, which share a machine, jump at the time t of the coordinator's clock. The
// jump is larger than the possible error of the exchanges.
func stepped(r *rand.Rand, t int64, machine ...*remote) {
	step := int64(r.ExpFloat64()*2e7) + 1e6
	for _, m := range machine {
		step += 2 * (m.up + m.down)
	}
	for _, m := range machine {
		m.stepAt, m.step = m.reads(t), step
	}
}

// exchange makes all exchanges that are due before a time of its clock.
func (m *remote) exchange(before int64) {
	for ; m.next < before; m.next += int64(exchangeEvery) {
		e := m.exchangeAt(m.r, m.next, m.up, m.down)
		e.A0, e.A3 = m.shows(e.A0), m.shows(e.A3)
		m.w.Exchanges = append(m.w.Exchanges, e)
	}
}

// record records an operation with its call and return on the coordinator's clock.
func (m *remote) record(op history.Op, call, returned int64) {
	on := func(t int64) time.Duration { return time.Duration(m.shows(m.reads(t)) - m.scale.from) }
	op.Call, op.Return, op.Process, op.Worker, op.Outcome = on(call), on(returned), int16(m.agent.number),
		int32(m.agent.number-1), history.OK
	op.Due = op.Call
	m.exchange(m.reads(returned))
	m.w.Ops, m.w.UpTo, m.w.Number = append(m.w.Ops, op), op.Return+1, m.received+1
	if m.r.IntN(5) == 0 {
		m.send()
	}
}

// send sends the recorded operations, unless an earlier frame was not accepted.
func (m *remote) send() {
	if m.take(&m.w); m.track.err != nil && !m.ended {
		m.ended = true
		m.feed.End()
	}
	m.w = frame{}
}

// together is a time for which two agents had the lock together.
type together struct {
	agents [2]int16
	long   time.Duration
}

// TestNoHistoryIsMisjudged makes random histories of three agents on two machines. Their clocks are apart and drift,
// and exchanges may take very different times in the two directions. Some clocks are stepped by more than exchanges
// allow for. A right history is never accused. If two agents hold the lock together for longer than twice the slack of
// their clocks, that is always found. The values that loads saw may narrow the slack, but never by too much. A step is
// noticed: then nothing is proved about that clock, and the partial history cannot pass.
func TestNoHistoryIsMisjudged(t *testing.T) {
	t.Parallel()
	rounds := 10000
	if testing.Short() {
		rounds = 500
	}
	right, found, hidden, narrowed, steps := 0, 0, 0, 0, 0
	for seed := range rounds {
		h, called, overlaps := random(t, rand.New(rand.NewPCG(uint64(seed), 5)))
		c, err := checker.Prepare(h)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if c.Bounds.Slack < h.Bounds.Slack || c.Bounds.Doubts[3].Offset < h.Bounds.Doubts[3].Offset {
			narrowed++
		}
		if h.Partial != "" {
			steps++
		} else if wrong := untrue(c, called); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
		v := checker.Exclusion.Check(c)
		if len(overlaps) == 0 && v.Status == checker.Fail {
			t.Fatalf("seed %d: a right history is accused, slack %v: %s", seed, h.Bounds.Slack, v.Summary)
		}
		for _, o := range overlaps {
			if slack := c.Bounds.Between(o.agents[0], o.agents[1]); o.long > 2*slack && v.Status != checker.Fail &&
				h.Partial == "" {
				t.Fatalf("seed %d: two holders for %v, slack %v: %s %s", seed, o.long, slack, v.Status, v.Summary)
			}
		}
		switch {
		case v.Status == checker.Fail:
			found++
		case len(overlaps) > 0:
			hidden++
		case v.Status == checker.Pass:
			right++
		}
	}
	t.Logf("%d right ones pass, %d violations are found, %d are shorter than the clocks allow to see; loads "+
		"narrowed %d bounds; %d steps", right, found, hidden, narrowed, steps)
	if right < rounds/20 || found < rounds/10 || narrowed < rounds/20 || steps < rounds/10 {
		t.Errorf("too few: %d right, %d found, %d narrowed, %d steps", right, found, narrowed, steps)
	}
}

// untrue returns operations of two agents whose clocks were further apart than the history says.
func untrue(c *checker.Case, called map[history.ID]int64) string {
	type reading struct{ at, off time.Duration }
	var last [4]reading
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Call == 0 {
			continue // it was before the beginning, as far as its clock is known
		}
		now := reading{time.Duration(called[op.ID]), op.Call - time.Duration(called[op.ID])}
		for p, r := range last {
			most := c.Bounds.Between(op.Process, int16(p)) + time.Duration(3*drift*float64(max(now.at-r.at,
				r.at-now.at))) + 4
			if off := now.off - r.off; r.at > 0 && p != int(op.Process) && max(off, -off) > most {
				return fmt.Sprintf("at %v the clocks of agents %d and %d are %v apart, more than %v", now.at,
					op.Process, p, off, most)
			}
		}
		last[op.Process] = now
	}
	return ""
}

// random returns a history of three agents on two machines that take turns at a lock. It also returns when each
// operation was called, and for how long two agents had the lock together.
func random(t *testing.T, r *rand.Rand) (*history.History, map[history.ID]int64, []together) {
	t.Helper()
	first := newRemote(r, 1, nil)
	agents := []*remote{first, newRemote(r, 2, first), newRemote(r, 3, nil)}
	wrong := r.IntN(2) == 0
	switch at := 5e6 + r.Int64N(2e8); r.IntN(8) {
	case 0:
		stepped(r, at, agents[:2]...)
	case 1:
		stepped(r, at, agents[2])
	}
	var overlaps []together
	free, owner, stored, hold := int64(1e6), int16(0), history.ID(0), int64(1e6)
	called := map[history.ID]int64{}
	var numbers [3]int
	i := 0
	for range 80 {
		if r.IntN(8) > 0 {
			i = (i + 1 + r.IntN(2)) % 3
		}
		m := agents[i]
		record := func(op history.Op, call, returned int64) history.ID {
			numbers[i]++
			op.ID = history.ID(i+1)<<40 | history.ID(numbers[i])
			if op.Kind == history.Acquire {
				op.Hold = op.ID
			}
			called[op.ID] = call
			m.record(op, call, returned)
			return op.ID
		}
		granted := free + 2e5 + r.Int64N(1e6)
		if wrong && r.IntN(20) == 0 && owner > 0 && granted > 20e6 {
			granted = free - r.Int64N(5e6) // while another worker, or the same, has it
		}
		call := max(min(granted, free)-r.Int64N(hold), m.last+1) // while the previous holder has it
		if granted <= call {
			granted = call + 1000
		}
		if granted < free {
			overlaps = append(overlaps, together{[2]int16{owner, int16(i + 1)}, time.Duration(free - granted)})
		}
		hold = int64(r.ExpFloat64()*5e6) + 2e5
		release := max(granted, free) + hold
		id := record(history.Op{Kind: history.Acquire, Until: history.Forever}, call, granted)
		sees := max(granted, free) + 2e4 // the value that was stored before the lock was free
		record(history.Op{Kind: history.Load, Hold: id, Seen: stored}, sees-1e4, sees+1e4)
		stored = record(history.Op{Kind: history.Store, Hold: id}, release-5e4, release-2e4)
		record(history.Op{Kind: history.Release, Hold: id}, release, release+5e4)
		m.last, free, owner = release+5e4, release, int16(i+1)
	}
	return gathered(t, agents), called, overlaps
}

// gathered returns the records of agents, as the coordinator receives them.
func gathered(t *testing.T, agents []*remote) *history.History {
	t.Helper()
	h := &history.History{Header: history.Header{Workers: 3, Processes: 4, Keys: 1,
		Claims: history.Claims{Excludes: true}}}
	h.Bounds.Rate = 3 * drift
	doubts := []history.Doubt{{}}
	for _, m := range agents {
		m.w.UpTo, m.w.Number = history.Forever, m.received+1
		if m.send(); m.track.err != nil && m.step == 0 {
			t.Fatal(m.track.err)
		}
		if m.track.err != nil {
			h.Partial = m.track.err.Error()
		}
		h.Ops = append(h.Ops, drained(m.feed)...)
	}
	for _, m := range agents {
		doubts = append(doubts, history.Doubt{Machine: m.host.number, Offset: m.track.proven()})
	}
	h.Bounds.Agreement = history.Agree(doubts)
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	if err := h.Validate(); err != nil {
		t.Fatal(err)
	}
	return h
}

// drained returns the operations that a feed has received.
func drained(f *history.Feed) (ops []history.Op) {
	m := history.NewMerge(history.NewClock(time.Hour), nil)
	m.Feeds = []*history.Feed{f}
	m.Drain(func(op *history.Op) { ops = append(ops, *op) })
	return ops
}
