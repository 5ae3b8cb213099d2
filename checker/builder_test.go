package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
)

// builder builds a history by hand. Its times are in ticks.
type builder struct {
	h       history.History
	numbers map[int32]uint64
	tick    time.Duration
}

func newBuilder() *builder { return &builder{numbers: map[int32]uint64{}, tick: time.Millisecond} }

// add appends an operation of a worker, and gives it an ID.
func (s *builder) add(op history.Op) history.ID {
	s.numbers[op.Worker]++
	op.ID = history.ID(op.Worker+2)<<40 | history.ID(s.numbers[op.Worker])
	for _, t := range []*time.Duration{&op.Call, &op.Return, &op.Until, &op.TTL} {
		if *t != history.Forever {
			*t *= s.tick
		}
	}
	if op.Kind == history.Acquire && op.Hold == 0 {
		op.Hold = op.ID
	}
	s.h.Ops = append(s.h.Ops, op)
	return op.ID
}

func (s *builder) grant(w int32, call, ret, ttl time.Duration) history.ID {
	until := history.Forever
	if ttl > 0 {
		until = call + ttl
	}
	return s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: w, Call: call, Return: ret,
		TTL: ttl, Until: until})
}

func (s *builder) refuse(w int32, call, ret time.Duration) history.ID {
	return s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Worker: w,
		Call: call, Return: ret})
}

func (s *builder) release(w int32, hold history.ID, call, ret time.Duration, out history.Outcome) history.ID {
	return s.add(history.Op{Kind: history.Release, Outcome: out, Hold: hold, Worker: w, Call: call, Return: ret})
}

func (s *builder) load(w int32, hold history.ID, call time.Duration, seen history.ID, value int64) history.ID {
	return s.add(history.Op{Kind: history.Load, Outcome: history.OK, Hold: hold, Seen: seen, Value: value, Worker: w,
		Call: call, Return: call + 1})
}

func (s *builder) store(w int32, hold history.ID, call time.Duration, seen history.ID, value int64) history.ID {
	return s.add(history.Op{Kind: history.Store, Outcome: history.OK, Hold: hold, Seen: seen, Value: value, Worker: w,
		Call: call, Return: call + 1})
}

func (s *builder) done(w int32, call, ret time.Duration) history.ID {
	return s.add(history.Op{Kind: history.End, Outcome: history.OK, Worker: w, Call: call, Return: ret})
}

func (s *builder) final(at time.Duration, seen history.ID, value int64) history.ID {
	return s.add(history.Op{Kind: history.Final, Outcome: history.OK, Seen: seen, Value: value, Worker: -1, Call: at,
		Return: at + 1})
}

// prepared returns the case of the operations that were written so far.
func (s *builder) prepared() *Case {
	slices.SortStableFunc(s.h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	c, err := Prepare(&s.h)
	if err != nil {
		panic(err)
	}
	return c
}

// expect compares a verdict with its status and cause, and a word of its summary.
func expect(t *testing.T, v Verdict, status Status, cause, word string) {
	t.Helper()
	if v.Status != status || v.Cause != cause || !strings.Contains(v.Summary, word) {
		t.Errorf("got %s %q: %s; want %s %q with %q\n%s", v.Status, v.Cause, v.Summary, status, cause, word,
			strings.Join(v.Story, "\n"))
	}
	if status == Fail && (len(v.Evidence) == 0 || len(v.Story) == 0 || v.Violations == 0) {
		t.Errorf("a failure without evidence, story or number: %+v", v)
	}
}

// many returns the number of random histories that a test draws: all of them at night, a quarter in make test-full, a
// twentieth in make test (-short). Even a twentieth suffices to catch the mutants.
func many(all int) int {
	switch {
	case testing.Short():
		return all / 20
	case live.Nightly():
		return all
	}
	return all / 4
}

// property compares a checker with an oracle on random histories. Both answer with a text.
type property struct {
	histories int
	draw      func(*rand.Rand) *builder
	check     func(*Case) string
	oracle    func(*Case) string
}

func (p *property) run(t *testing.T) {
	t.Helper()
	p.histories = many(p.histories)
	answers := map[string]int{}
	for seed := range p.histories {
		s := p.draw(rand.New(rand.NewPCG(uint64(seed), 1)))
		c := s.prepared()
		want := p.oracle(c)
		answers[strings.Fields(want)[0]]++
		if got := p.check(c); got != want {
			s.h.Ops = p.shrink(s.h)
			c = s.prepared()
			t.Fatalf("seed %d: the checker says %s, the oracle %s\n%s", seed, p.check(c), p.oracle(c), show(c))
		}
	}
	t.Logf("%d histories: %v", p.histories, answers)
	if len(answers) < 2 {
		t.Errorf("all histories have the same answer: %v", answers)
	}
	for word, n := range answers {
		if n == p.histories {
			t.Errorf("every history is %s", word)
		}
	}
}

// shrink leaves out operations as long as the answers differ.
func (p *property) shrink(h history.History) []history.Op {
	ops := h.Ops
	for again := true; again; {
		again = false
		for i := range ops {
			fewer := h
			fewer.Ops = slices.Delete(slices.Clone(ops), i, i+1)
			if c, err := Prepare(&fewer); err == nil && !dangles(c) && p.check(c) != p.oracle(c) {
				ops, again = fewer.Ops, true
				break
			}
		}
	}
	return ops
}

// dangles reports whether a store or hold that an operation names is missing: such histories mean nothing.
func dangles(c *Case) bool {
	return slices.ContainsFunc(c.Ops, func(op history.Op) bool {
		return op.Seen != 0 && c.op(op.Seen) == nil || op.Hold != 0 && c.op(op.Hold) == nil
	})
}

func show(c *Case) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", c.Header)
	for _, op := range c.Ops {
		fmt.Fprintf(&b, "%s %s key %d w%d %s %s hold %s seen %s value %d fence %d token %d call %s "+
			"return %s until %s ttl %s\n", op.ID,
			op.Kind, op.Key, op.Worker, op.Outcome, op.Reason, op.Hold, op.Seen, op.Value, op.Fence, op.Token, op.Call,
			op.Return, op.Until, op.TTL)
	}
	return b.String()
}
