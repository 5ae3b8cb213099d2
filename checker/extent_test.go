package checker

import (
	"reflect"
	"testing"
	"time"

	"hammerlock/history"
)

// TestTheExtentIsTheMaximaOfARun: an extent has no sums. It has the number of renewals of the hold with the most, the
// longest wait (with or without a grant), and the errors of lock calls only.
func TestTheExtentIsTheMaximaOfARun(t *testing.T) {
	s := newBuilder()
	s.h.Header = history.Header{Claims: history.Claims{Excludes: true, Expires: true, Owned: true},
		Faults: []history.Injection{{Name: "delay"}, {Name: "reset"}}}
	a := s.grant(0, 0, 10, 100)
	for at := time.Duration(20); at < 50; at += 10 {
		s.add(history.Op{Kind: history.Extend, Outcome: history.OK, Hold: a, Worker: 0, Call: at, Return: at + 1,
			TTL: 300, Until: at + 300})
	}
	s.refuse(1, 15, 16)
	s.refuse(1, 300, 305)
	s.done(1, 15, 305)
	s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 30, Return: 31})
	s.add(history.Op{Kind: history.Release, Reason: history.Timeout, Hold: a, Worker: 0, Call: 60, Return: 70})
	s.add(history.Op{Kind: history.Store, Reason: history.Refused, Hold: a, Worker: 0, Call: 50, Return: 51})
	want := &Extent{Lease: 300 * time.Millisecond, Hold: 50 * time.Millisecond, Renewals: 3,
		Wait: 290 * time.Millisecond, Workers: 2, Processes: 1, Keys: 1, Errors: []string{"timeout"},
		Faults: []string{"delay"}, Claims: []string{"excludes", "expires", "owned", "serves"}}
	got := judgeActivity(s.prepared()).Extent
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v,\nwant %+v", got, want)
	}
	sum := Extent{}
	sum.Add(got)
	sum.Add(&Extent{Wait: time.Second, Errors: []string{"dropped"}, ClockUnread: true})
	text := "leases up to 300 ms, holds up to 50.0 ms, 3 renewals of a hold, waits up to 1.00 s, 2 workers, 1 key; " +
		"errors dropped, timeout; faults delay; not the wall clock, which the program did not read"
	if sum.Text() != text {
		t.Errorf("got %q,\nwant %q", sum.Text(), text)
	}
}

// TestARenewingLockHasOutlastedItsLeases: renewals that a library makes beside the calls are no operations.
func TestARenewingLockHasOutlastedItsLeases(t *testing.T) {
	s := newBuilder()
	s.h.Claims = history.Claims{Excludes: true, Expires: true, Renews: true}
	a := s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Call: 0, Return: 10, TTL: 100,
		Until: history.Forever})
	s.release(0, a, 540, 550, history.OK)
	if got := judgeActivity(s.prepared()).Extent; got.Renewals != 5 {
		t.Errorf("got %+v", got)
	}
}
