package checker

import (
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

const ms = time.Millisecond

// script writes histories by hand. Times are in milliseconds.
type script struct {
	history.History
	numbers map[int32]uint64
}

func newScript() *script {
	s := &script{numbers: map[int32]uint64{}}
	s.Claims = history.Claims{Excludes: true, Expires: true, Owned: true}
	s.Bounds = history.Bounds{Rate: 0.001, Round: 2 * ms}
	s.Processes = 1
	return s
}

func (s *script) op(kind history.Kind, worker int32, call, ret time.Duration) *history.Op {
	s.numbers[worker]++
	s.Ops = append(s.Ops, history.Op{ID: history.ID(uint64(worker+2)<<40 | s.numbers[worker]),
		Worker: worker, Kind: kind,
		Call: call * ms, Return: ret * ms, Outcome: history.OK})
	return &s.Ops[len(s.Ops)-1]
}

// acquire is a grant for ttl with an honest deadline; its operation's ID names the hold.
func (s *script) acquire(worker int32, call, ret, ttl time.Duration) history.ID {
	op := s.op(history.Acquire, worker, call, ret)
	op.Hold, op.TTL, op.Token = op.ID, ttl*ms, uint64(op.ID)
	op.Until = (call + ttl - ttl/100 - 2) * ms
	return op.ID
}

// busy is a refused try.
func (s *script) busy(worker int32, call, ret time.Duration) *history.Op {
	op := s.op(history.Acquire, worker, call, ret)
	op.Hold, op.Outcome, op.Reason, op.Token = op.ID, history.Failed, history.Busy, uint64(op.ID)
	return op
}

func (s *script) on(hold history.ID, kind history.Kind, call, ret time.Duration) *history.Op {
	worker := int32(hold.Lane() - 1)
	op := s.op(kind, worker, call, ret)
	op.Hold = hold
	return op
}

func (s *script) release(hold history.ID, call, ret time.Duration) *history.Op {
	return s.on(hold, history.Release, call, ret)
}

func (s *script) denied(hold history.ID, call, ret time.Duration) {
	op := s.release(hold, call, ret)
	op.Outcome, op.Reason = history.Failed, history.Lost
}

func (s *script) extend(hold history.ID, call, ret, ttl time.Duration) *history.Op {
	op := s.on(hold, history.Extend, call, ret)
	op.TTL, op.Until = ttl*ms, (call+ttl-ttl/100-2)*ms
	return op
}

// Effects of faults. Judges do not read the names of faults.
var (
	serverDies    = history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys, Blocks: true}
	serverHangs   = history.Effect{Hits: []history.Party{history.Servers}, Blocks: true}
	failsOver     = history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesWrites, Blocks: true}
	minorityHangs = history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Spares: true}
	workerLate    = history.Effect{Hits: []history.Party{history.Holders}}
	processStops  = history.Effect{Hits: []history.Party{history.Clients}}
	answersLost   = history.Effect{Hits: []history.Party{history.Links}, Blocks: true}
	messagesLate  = history.Effect{Hits: []history.Party{history.Links}}
	nothingBreaks = history.Effect{Hits: []history.Party{history.Nobody}}
)

// reenter adds a re-entry of a hold by its worker.
func (s *script) reenter(hold history.ID, call, ret, ttl time.Duration) *history.Op {
	op := s.on(hold, history.Acquire, call, ret)
	op.TTL, op.Token, op.Until = ttl*ms, uint64(hold), (call+ttl-ttl/100-2)*ms
	return op
}

func (s *script) fault(e history.Effect, from, to time.Duration) {
	n := int64(len(s.Faults))
	s.Faults = append(s.Faults, history.Injection{Name: "something happens", Effect: e, From: from * ms, To: to * ms})
	s.op(history.Fault, -1, from, from+1).Value = n
	s.op(history.Heal, -1, to, to+1).Value = n
}

// gap pauses a process.
func (s *script) gap(process int16, from, to time.Duration) {
	s.op(history.Gap, -1, from, to).Process = process
}

func (s *script) last() *history.Op { return &s.Ops[len(s.Ops)-1] }

func (s *script) prepare(t testing.TB) *Case {
	t.Helper()
	slices.SortStableFunc(s.Ops, func(a, b history.Op) int { return stamp{a.Return, 0}.compare(stamp{b.Return, 0}) })
	c, err := Prepare(&s.History)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
