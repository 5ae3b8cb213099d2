package workload

import (
	"context"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// generous grants every share, and lets every reader become the writer.
type generous struct{ locks.Lock }

func (g generous) AcquireShare(_ context.Context, key string, _ time.Duration, permits int) (locks.Lease, error) {
	return locks.Lease{Key: key, Token: "t", Permits: permits}, nil
}

func (g generous) Upgrade(_ context.Context, l locks.Lease, _ time.Duration) (locks.Lease, error) {
	l.Permits = 0
	return l, nil
}

// shared lets one worker make visits under a lock with these claims.
func shared(t *testing.T, plan Shape, claims history.Claims) []history.Op {
	t.Helper()
	plan.Workers, plan.Keys, plan.Visits, plan.End = 1, 1, 200, time.Minute
	_, ops, _ := runWith(t, plan, func(int) locks.Lock { return generous{catalogued(t, "none")(0)} }, t.Context(),
		func(c *Workers) { c.Claims = claims })
	return ops
}

// TestReadersLookTwiceAndStoreNothing is about the share of visits that read.
func TestReadersLookTwiceAndStoreNothing(t *testing.T) {
	loads, stores, readers := map[history.ID]int{}, map[history.ID]int{}, 0
	for _, op := range shared(t, Shape{Readers: 0.8}, history.Claims{Readers: true}) {
		switch op.Kind {
		case history.Acquire:
			if loads[op.ID] = 0; op.Permits == 1 {
				readers++
				loads[op.ID] = 100
			}
		case history.Load:
			loads[op.Hold]++
		case history.Store:
			stores[op.Hold]++
		}
	}
	if readers < 120 || readers > 195 {
		t.Errorf("%d of 200 visits read, want about 160", readers)
	}
	for hold, n := range loads {
		if reads := n >= 100; reads && (n != 102 || stores[hold] > 0) || !reads && (n != 1 || stores[hold] != 1) {
			t.Errorf("hold %s: %d loads (a reader's from 100), %d stores", hold, n, stores[hold])
		}
	}
	for _, op := range shared(t, Shape{Readers: 0.8}, history.Claims{}) {
		if op.Permits > 0 {
			t.Fatal("a lock that does not claim readers has one")
		}
	}
}

// TestPermitsAreCountedInOneStep is about the visits of a semaphore.
func TestPermitsAreCountedInOneStep(t *testing.T) {
	ops, asked := shared(t, Shape{Permits: 3}, history.Claims{Permits: 4}), map[uint16]int{}
	for _, op := range ops {
		if op.Kind == history.Acquire {
			asked[op.Permits]++
		}
	}
	if len(asked) != 3 || asked[0] > 0 || asked[1] < 20 || asked[3] < 20 {
		t.Errorf("visits asked for permits as %v, want 1 to 3", asked)
	}
	if n := count(ops, history.Store, history.OK); n != 200 || count(ops, history.Load, history.OK) > 0 {
		t.Errorf("%d of 200 visits were counted, %d loads", n, count(ops, history.Load, history.OK))
	}
}

// TestAnUpgradeIsAHoldOfItsOwn is about the record of a reader that becomes the writer.
func TestAnUpgradeIsAHoldOfItsOwn(t *testing.T) {
	ops := shared(t, Shape{Readers: 1, Upgrade: 1}, history.Claims{Readers: true, Upgrades: true})
	upgraded := map[history.ID]bool{}
	for _, op := range ops {
		switch {
		case op.Kind == history.Acquire && op.Seen != 0:
			upgraded[op.ID] = op.Permits == 0 && op.Hold == op.ID
		case (op.Kind == history.Store || op.Kind == history.Release) && !upgraded[op.Hold]:
			t.Fatalf("a %s of %s, which is no upgrade", op.Kind, op.Hold)
		}
	}
	if n := count(ops, history.Store, history.OK); len(upgraded) != 200 || n != 200 {
		t.Errorf("%d upgrades, %d stores, want 200", len(upgraded), n)
	}
}
