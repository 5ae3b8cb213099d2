package driver

import (
	"context"
	"errors"
	"testing"
	"time"

	"hammerlock/locks"
)

// TestWhatAnAnswerSays: the validity counts from the call, and the driver's count of holds is used.
func TestWhatAnAnswerSays(t *testing.T) {
	t.Parallel()
	p, err := started(t, "rich")
	if err != nil {
		t.Fatal(err)
	}
	l, begin := p.Worker(nil), time.Now()
	outer, err := l.Acquire(t.Context(), "k", time.Hour)
	if first, last := begin.Add(time.Hour/2), time.Now().Add(time.Hour/2); err != nil || outer.Until.Before(first) ||
		outer.Until.After(last) || outer.Count != 1 {
		t.Fatalf("want half an hour from %v: %+v, %v", begin, outer, err)
	}
	inner, err := l.Acquire(t.Context(), "k", time.Hour)
	if err != nil || inner.Count != 2 {
		t.Fatalf("again: %+v, %v", inner, err)
	}
	other := p.Worker(nil)
	if _, err := other.Acquire(t.Context(), "k", time.Hour); !errors.Is(err, locks.ErrBusy) {
		t.Errorf("another worker: %v", err)
	}
	if err := errors.Join(l.Release(t.Context(), inner), l.Release(t.Context(), outer)); err != nil {
		t.Error(err)
	}
	if err := l.Release(t.Context(), outer); !errors.Is(err, locks.ErrLost) {
		t.Errorf("released once too often: %v", err)
	}
	if free, err := other.Acquire(t.Context(), "k", time.Hour); err != nil || free.Count != 1 {
		t.Errorf("what a worker was refused with a token is not what it holds: %+v, %v", free, err)
	}
}

// TestALockOfSeveralKeys: the driver gets all keys, and one release covers the hold.
func TestALockOfSeveralKeys(t *testing.T) {
	t.Parallel()
	p, err := started(t, "several")
	if err != nil {
		t.Fatal(err)
	}
	l, other := p.Worker(nil).(locks.Several), p.Worker(nil)
	held, err := l.AcquireAll(t.Context(), []string{"a", "b"}, time.Hour, time.Hour)
	if err != nil || held.Key != "a" || len(held.Keys) != 2 || held.Token == "" {
		t.Fatalf("got %+v, %v", held, err)
	}
	if _, err := other.(locks.Several).AcquireAll(t.Context(), []string{"c", "b"}, time.Hour, 0); !errors.Is(err,
		locks.ErrBusy) {
		t.Errorf("another worker: %v", err)
	}
	if err := l.(locks.Lock).Release(t.Context(), held); err != nil {
		t.Error(err)
	}
	if _, err := other.(locks.Several).AcquireAll(t.Context(), []string{"b"}, time.Hour, 0); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

// TestALockThatIsShared: the driver gets the mode, read or write, or the number of permits.
func TestALockThatIsShared(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][2]string{
		"shares": {"read<nil>", "write<nil>"}, "permits": {"<nil> 2", "<nil> 3"},
	} {
		p, err := started(t, mode)
		if err != nil {
			t.Fatal(err)
		}
		some, all := p.Worker(nil), p.Worker(nil)
		permits := map[string]int{"shares": 1, "permits": 2}[mode]
		reader, err := some.(locks.Sharer).AcquireShare(t.Context(), "k", time.Hour, permits)
		writer, failed := all.Acquire(t.Context(), "l", time.Hour)
		if err = errors.Join(err, failed); err != nil || reader.Token != want[0] || writer.Token != want[1] ||
			reader.Permits != permits || writer.Permits != 0 {
			t.Errorf("%s: got %+v and %+v, %v, want %q", mode, reader, writer, err, want)
		}
		if mode == "shares" {
			if reader, err = some.(locks.Upgrader).Upgrade(t.Context(), reader, time.Hour); err != nil ||
				reader.Permits != 0 {
				t.Errorf("upgraded to %+v, %v", reader, err)
			}
		}
		if err := errors.Join(some.Release(t.Context(), reader), all.Release(t.Context(), writer)); err != nil {
			t.Error(err)
		}
	}
}

// TestAnAcquireThatWasCalledOffSaysWhatItSays: a driver that supports cancel answers, and its answer counts.
func TestAnAcquireThatWasCalledOffSaysWhatItSays(t *testing.T) {
	t.Parallel()
	p, err := started(t, "right")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Worker(nil).Acquire(ctx, "until-called-off", time.Hour); !errors.Is(err, locks.ErrBusy) {
		t.Errorf("got %v", err)
	}
}

// TestAHoldThatIsReportedLost: the event signals the loss to its holder and to no other. The hold may still be
// released.
func TestAHoldThatIsReportedLost(t *testing.T) {
	t.Parallel()
	p, err := started(t, "ok-after-lost") // it reports the loss before it answers the release
	if err != nil {
		t.Fatal(err)
	}
	p.spec.Claims.Renews = true
	a, b := p.Worker(nil), p.Worker(nil)
	lost, err := a.Acquire(t.Context(), "a", time.Hour)
	kept, failed := b.Acquire(t.Context(), "b", time.Hour)
	if err = errors.Join(err, failed, a.Release(t.Context(), lost)); err != nil {
		t.Fatal(err)
	}
	<-lost.Lost
	soon, err := a.Acquire(t.Context(), "lost-at-once", time.Hour) // it reports the loss before it answers the acquire
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-soon.Lost:
	default:
		t.Error("a loss that was reported before its grant was dropped")
	}
	select {
	case <-kept.Lost:
		t.Error("another hold was lost, too")
	default:
	}
}

// TestALibraryThatWaits: the library waits for another worker's release. The lease counts from the successful
// attempt.
func TestALibraryThatWaits(t *testing.T) {
	t.Parallel()
	p, err := started(t, "waits")
	if err != nil {
		t.Fatal(err)
	}
	a, b := p.Worker(nil), p.Worker(nil).(locks.Patient)
	held, err := a.Acquire(t.Context(), "k", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.AcquireWithin(t.Context(), "k", time.Hour, 0); !errors.Is(err, locks.ErrBusy) {
		t.Errorf("one try for what is held: %v", err)
	}
	begin, waited := time.Now(), make(chan locks.Lease)
	go func() {
		lease, err := b.AcquireWithin(t.Context(), "k", time.Hour, time.Minute)
		if err != nil {
			t.Error(err)
		}
		waited <- lease
	}()
	select {
	case <-waited:
		t.Error("granted what is held")
	case <-time.After(100 * time.Millisecond):
	}
	if err := a.Release(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	lease := <-waited
	if now := time.Now(); lease.Tried <= 0 || begin.Add(lease.Tried).After(now) ||
		lease.Until.Before(locks.Until(begin.Add(lease.Tried), time.Hour)) ||
		lease.Until.After(locks.Until(now, time.Hour)) {
		t.Errorf("tried %v after the call at %v; it ends %v after one that began with the call", lease.Tried, begin,
			lease.Until.Sub(locks.Until(begin, time.Hour)))
	}
}
