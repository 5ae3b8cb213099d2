package locks

import (
	"errors"
	"testing"
	"time"

	"hammerlock/history"
)

// renewals gives the environment a lane and returns what was recorded there, when nobody writes it any more.
func renewals(e *Env) func() []history.Op {
	clock := history.NewOrderedClock(0)
	e.Renewals = history.NewLane(clock, 0, 0, 1024, make(chan struct{}, 1))
	return func() (ops []history.Op) {
		history.NewMerge(clock, []*history.Lane{e.Renewals}).Flush(func(op *history.Op) { ops = append(ops, *op) })
		return ops
	}
}

func TestRenewedLocksOutliveTheirLease(t *testing.T) {
	home := homes(t)
	for _, s := range every {
		if !s.Claims.Renews {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.Name != "rueidislock" { // it keeps a core and the server busy
				t.Parallel()
			}
			e := home(s).env()
			recorded := renewals(&e)
			b := open(t, s, home(s).env())
			a, err := s.Open(e)
			must(t, err)
			held := grant(t, a, s.Name, renewed)
			outlive(3 * renewed)
			if _, err := b.Acquire(t.Context(), s.Name, renewed); !refused(err) {
				t.Errorf("after three leases: %v, want a refusal", err)
			}
			must(t, a.Release(t.Context(), held))
			must(t, b.Release(t.Context(), grant(t, b, s.Name, renewed)))
			must(t, a.Close())
			checkRenewals(t, recorded(), held)
		})
	}
}

func checkRenewals(t *testing.T, ops []history.Op, held Lease) {
	t.Helper()
	good := 0
	for _, op := range ops {
		if op.Kind != history.Extend || op.Token != history.Hash(held.Token) || op.Hold != 0 || op.TTL != renewed {
			t.Errorf("recorded %+v", op)
		}
		if op.Outcome == history.OK {
			good++
			// A busy machine may let time pass between the recorded call and the moment from which the lock counts.
			if op.Until != history.Forever && (op.Until <= op.Call || op.Until > op.Return+renewed) {
				t.Errorf("renewed for %v of %v", op.Until-op.Return, renewed)
			}
		}
	}
	if good < 3 {
		t.Errorf("%d renewals recorded in three leases", good)
	}
}

func TestRenewedLocksTellThatTheyAreLost(t *testing.T) {
	t.Parallel()
	for _, s := range every {
		if !s.Claims.Renews || s.Broken != "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, homeName(s))
			e := home.env()
			recorded := renewals(&e)
			a, err := s.Open(e)
			must(t, err)
			held := grant(t, a, s.Name, renewed)
			for _, c := range home.sites {
				must(t, c.FlushAll(t.Context()).Err())
			}
			select {
			case <-held.Lost:
			case <-time.After(2 * renewed):
				t.Error("not told within two leases that its keys are gone")
			}
			if err := a.Release(t.Context(), held); !errors.Is(err, ErrLost) {
				t.Errorf("release: %v, want ErrLost", err)
			}
			must(t, a.Close())
			ops := recorded()
			if len(ops) == 0 {
				if !isRueidislock(s) { // it is told by an invalidation
					t.Error("no renewal is recorded")
				}
			} else if last := ops[len(ops)-1]; last.Outcome == history.OK || last.Outcome == history.Failed && last.Reason != history.Lost {
				t.Errorf("the last renewal is recorded as %s %s", last.Outcome, last.Reason)
			}
		})
	}
}

// TestRenewedLocksTellThatNobodyAnswers hangs the servers: the last acknowledged lease runs out.
func TestRenewedLocksTellThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	for _, s := range every {
		if !s.Claims.Renews || s.Broken != "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, homeName(s))
			held := grant(t, open(t, s, home.env()), s.Name, renewed)
			for _, n := range home.top.Nodes {
				must(t, n.Pause())
				defer func() { must(t, n.Resume()) }()
			}
			start := time.Now()
			select {
			case <-held.Lost:
			case <-time.After(10 * renewed):
				t.Fatal("never told")
			}
			// The last renewal may have been acknowledged just before the pause.
			if took := time.Since(start); took > 2*renewed {
				t.Errorf("told after %v of a lease of %v", took, renewed)
			}
		})
	}
}

// TestCloseIsHowAWorkerDies: nothing is renewed and nothing given back.
func TestCloseIsHowAWorkerDies(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range every {
		if !s.Claims.Renews || s.Broken != "" || isRueidislock(s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			a, err := s.Open(home(s).env())
			must(t, err)
			b := open(t, s, home(s).env())
			grant(t, a, s.Name, renewed)
			must(t, a.Close())
			if _, err := b.Acquire(t.Context(), s.Name, renewed); !refused(err) {
				t.Errorf("after its death: %v, want a refusal", err)
			}
			outlive(2 * renewed)
			grant(t, b, s.Name, renewed)
		})
	}
}
