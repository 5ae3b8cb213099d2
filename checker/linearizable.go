package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var linearizable = Checker{
	Name:    "linearizable",
	Doc:     "a second opinion: porcupine agrees with the exact checkers around every witness and in random windows",
	Causes:  []string{history.NotLinearizable},
	Applies: func(h *history.Header) bool { return h.Claims.Alone() && !h.Claims.Once },
	Check:   checkLinearizable,
}

const (
	aroundWitness   = 150 // number of holds on either side of a witness
	windowsAtRandom = 8
	secondOpinion   = 10 * time.Second // time limit for one window

	harnessError = history.HarnessError // cause of a verdict that shows an error of the suite
)

func checkLinearizable(c *Case) Verdict {
	v := Verdict{Causes: map[string]int64{}, Misses: map[string]int64{}}
	var samples [][]int32
	r := rand.New(rand.NewPCG(uint64(len(c.Ops)), uint64(len(c.holds)))) // the seed depends on the history only
	for n := 0; n < windowsAtRandom && len(c.holds) > 0; n++ {
		samples = add(samples, c.around(int32(r.IntN(len(c.holds)))))
	}
	for _, p := range c.examine().losses {
		samples = add(samples, c.around(p.second))
	}
	for _, holds := range samples {
		c.compareWithPorcupine(&v, holds)
	}
	f := c.examine()
	switch {
	case v.Cause == harnessError:
	case v.Violations > 0 && len(f.counts) == 0 && f.excused > 0:
		v.Misses["unplanned"], v.Violations, v.Evidence = v.Violations, 0, nil
		v.Summary = "excused: windows without an order: " + f.excuse.String()
	case v.Violations > 0:
		v.Status, v.Cause = Fail, history.NotLinearizable
		v.Causes[v.Cause] = v.Violations
		v.Summary = fmt.Sprintf("an independent checker (porcupine) confirms it in %s of %s", human.Count(v.Violations),
			human.Quantity(len(samples), "sample"))
	case v.Misses["timeout"] > 0:
		v.Summary = fmt.Sprintf("an independent checker (porcupine) gave up on %s samples",
			human.Count(v.Misses["timeout"]))
	case v.Exposed == 0:
		v.Summary = "no sample has two holds"
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("an independent checker (porcupine) finds an order for %s holds",
			human.Count(v.Exposed))
	}
	return v
}

// add adds a sample of holds unless the list has it already: in a short history all samples are equal.
func add(windows [][]int32, window []int32) [][]int32 {
	if slices.ContainsFunc(windows, func(w []int32) bool { return slices.Equal(w, window) }) {
		return windows
	}
	return append(windows, window)
}

// around lists the holds of a key near a given hold.
func (c *Case) around(hold int32) []int32 {
	holds := c.holdsOf(c.holds[hold].Key)
	at, _ := slices.BinarySearch(holds, hold)
	return holds[max(at-aroundWitness, 0):min(at+aroundWitness, len(holds))]
}

// compareWithPorcupine compares the exact checker with porcupine on a window of holds. Porcupine has no clock: for it,
// a lease may end at any time from T1 after its last proof on. So it is compared with a sweep that assumes the same.
func (c *Case) compareWithPorcupine(v *Verdict, holds []int32) {
	s := newSweeper(c)
	s.scope = everywhere
	holds = s.certain(holds)
	if len(holds) < 2 {
		return
	}
	v.Exposed += int64(len(holds))
	var first *pair
	found := func(p pair) {
		if first == nil {
			first = &p
		}
	}
	s.losses(holds, false, found)
	s.proven(holds, false, found)
	result := porcupine.CheckOperationsTimeout(leaseModel, s.encode(holds), secondOpinion)
	switch {
	case result == porcupine.Unknown:
		v.Misses["timeout"]++
	case (result == porcupine.Illegal) != (first != nil):
		v.Status, v.Cause = Fail, harnessError
		v.Summary = fmt.Sprintf("porcupine and the exact checker disagree on %d holds of page %d: porcupine says %s",
			len(holds), c.holds[holds[0]].Key, result)
		v.Evidence = []history.Op{*c.acquire(&c.holds[holds[0]]), *c.acquire(&c.holds[holds[len(holds)-1]])}
	case first != nil:
		v.Violations++
		if v.Evidence == nil {
			v.Evidence = []history.Op{*c.acquire(&c.holds[first.first]), *c.acquire(&c.holds[first.second])}
		}
	}
}

// certain removes holds that the model does not support. These are shared holds, and holds that the exact checker
// ignores because they are unproven, or because their lease may have ended before the answer.
func (s *sweeper) certain(holds []int32) []int32 {
	var list []int32
	for _, n := range holds {
		h := &s.c.holds[n]
		if h.Permits > 0 {
			continue
		}
		if h.Outcome == history.OK {
			if t := s.slot(h, false); t.end(t.lo) <= t.hi {
				continue
			}
		} else if s.proof(h) == nil {
			continue
		}
		list = append(list, n)
	}
	return list
}

// step is an operation in porcupine's model of a lock.
type step struct {
	kind action
	hold int32
}

type action uint8

const (
	take action = iota // requires that the lock is free
	give               // requires that this hold has the lock
	lose               // frees the lock if this hold has it
)

// leaseModel is a lock whose leases may expire: its state is the hold that has the lock; -1 = none.
var leaseModel = porcupine.Model{
	Init: func() any { return int32(-1) },
	Step: func(state, input, _ any) (bool, any) {
		owner, in := state.(int32), input.(step)
		switch in.kind {
		case take:
			return owner == -1, in.hold
		case give:
			return owner == in.hold, int32(-1)
		default:
			if owner == in.hold {
				owner = -1
			}
			return true, owner
		}
	},
	Hash: func(state any) uint64 { return uint64(state.(int32)+1) * 0x9e3779b97f4a7c15 },
}

// encode converts holds to operations for porcupine. The end of a lease is an operation that may happen at any time
// from T1 after the last proof on. A release with an unknown effect may happen at any time after its call. Operations
// that touch in time count as concurrent in both checkers.
func (s *sweeper) encode(holds []int32) []porcupine.Operation {
	var list []porcupine.Operation
	add := func(k action, n int32, call, ret time.Duration) {
		h := &s.c.holds[n]
		list = append(list, porcupine.Operation{ClientId: int(max(h.Worker, 0)), Input: step{k, n}, Call: int64(call),
			Return: int64(ret)})
	}
	for _, n := range holds {
		h := &s.c.holds[n]
		half := s.half(h)
		if h.Outcome != history.OK {
			op := s.proof(h)
			add(take, n, h.Call-half, plus(op.Return, half))
			add(give, n, op.Call-half, plus(op.Return, half))
			continue
		}
		t := s.slot(h, false)
		add(take, n, t.lo, t.hi)
		switch {
		case t.kind == returned:
			add(give, n, h.releaseCall-half, plus(h.releaseReturn, half))
		case t.kind == maybe && t.call < t.over:
			add(lose, n, t.call, history.Forever)
		case t.over != history.Forever:
			add(lose, n, t.over, history.Forever)
		}
	}
	return list
}
